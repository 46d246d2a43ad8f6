// Types of webhook bodies as sellers send them (contract.md §6).
// Used by the schemas and by sample payloads; public for users of `proto-webhooks/events`.

/**
 * The whole JSON body of a webhook about a task that was called by MCP, as the seller sends it and `samplePayloads`
 * builds it. Unknown members are kept.
 */
export interface ToolEnvelope {
  /**
   * The idempotency key: 16 to 255 characters of `[A-Za-z0-9_.:-]`. Each event has its own, the same on every
   * retry.
   */
  readonly idempotency_key: string;
  readonly task_id: string;
  /** A task status. An event with an unknown status goes to the handler `other`. */
  readonly status: string;
  /** The operation id, echoed from the request's `push_notification_config`. */
  readonly operation_id?: string | null | undefined;
  /** The type of the task, e.g. `create_media_buy`. The envelope of a delivery report has `media_buy_delivery`. */
  readonly task_type?: string | null | undefined;
  /** The domain of the task, e.g. `media-buy`. */
  readonly domain?: string | null | undefined;
  /** The time of the event, ISO 8601 in UTC. */
  readonly timestamp?: string | null | undefined;
  readonly message?: string | null | undefined;
  /** The task-specific data; its shape depends on task type and status. */
  readonly result?: unknown;
  /** The `context` of the originating request, echoed unchanged. */
  readonly context?: unknown;
  readonly [member: string]: unknown;
}

/**
 * A part of an A2A message or artifact: data if `data` is an object, otherwise text. The member `kind` may be absent.
 */
export interface AgentPart {
  readonly kind?: string | null | undefined;
  readonly text?: string | null | undefined;
  readonly data?: unknown;
  readonly [member: string]: unknown;
}

/** An artifact (a result in parts) of an A2A task, in `artifacts` of an `AgentTask`. */
export interface AgentArtifact {
  readonly artifactId?: string | null | undefined;
  readonly parts?: readonly AgentPart[] | null | undefined;
  readonly [member: string]: unknown;
}

/** A message in parts, in the status of an A2A task: `status.message`. */
export interface AgentMessage {
  readonly parts?: readonly AgentPart[] | null | undefined;
  readonly [member: string]: unknown;
}

/** The status of an A2A task: its state, its time, and a message. */
export interface AgentTaskStatus {
  /**
   * The state, e.g. `input-required` or `TASK_STATE_INPUT_REQUIRED`. An event with an unknown state goes to the
   * handler `other`.
   */
  readonly state: string;
  /** The time of the status, ISO 8601. */
  readonly timestamp?: string | null | undefined;
  readonly message?: AgentMessage | null | undefined;
  readonly [member: string]: unknown;
}

/** An A2A `Task` as the body of a webhook, which sellers send for final states. */
export interface AgentTask {
  readonly id: string;
  readonly contextId?: string | null | undefined;
  readonly status: AgentTaskStatus;
  readonly artifacts?: readonly AgentArtifact[] | null | undefined;
  readonly [member: string]: unknown;
}

/** An A2A `TaskStatusUpdateEvent` as the body of a webhook, which sellers send for progress. */
export interface AgentTaskStatusUpdate {
  readonly taskId: string;
  readonly contextId?: string | null | undefined;
  readonly status: AgentTaskStatus;
  readonly [member: string]: unknown;
}
