/** The tool-transport webhook envelope: the full POST body (contract.md §6.1). Unknown members survive. */
export interface ToolEnvelope {
  /** 16 to 255 characters of `[A-Za-z0-9_.:-]`; one per distinct event, stable across retries. */
  readonly idempotency_key: string;
  readonly task_id: string;
  /** A task status; an unknown word is handed to `other`. */
  readonly status: string;
  /** Echoed from the request's `push_notification_config`. */
  readonly operation_id?: string | null | undefined;
  /** A task's name, or e.g. `media_buy_delivery`. */
  readonly task_type?: string | null | undefined;
  /** e.g. `media-buy`. */
  readonly domain?: string | null | undefined;
  /** ISO 8601, UTC. */
  readonly timestamp?: string | null | undefined;
  readonly message?: string | null | undefined;
  /** Task-specific, by status. */
  readonly result?: unknown;
  /** Echo of the originating request's `context`, verbatim. */
  readonly context?: unknown;
  readonly [member: string]: unknown;
}

/** A part is a data part where `data` is an object, with or without `kind`. */
export interface AgentPart {
  readonly kind?: string | null | undefined;
  readonly text?: string | null | undefined;
  readonly data?: unknown;
  readonly [member: string]: unknown;
}

/** A result of the agent transport, in parts. */
export interface AgentArtifact {
  readonly artifactId?: string | null | undefined;
  readonly parts?: readonly AgentPart[] | null | undefined;
  readonly [member: string]: unknown;
}

/** A message of the agent transport, in parts. */
export interface AgentMessage {
  readonly parts?: readonly AgentPart[] | null | undefined;
  readonly [member: string]: unknown;
}

/** Where a task of the agent transport stands. */
export interface AgentTaskStatus {
  /** `input-required` or `TASK_STATE_INPUT_REQUIRED`; unknown states are handed to `other`. */
  readonly state: string;
  /** ISO 8601. */
  readonly timestamp?: string | null | undefined;
  readonly message?: AgentMessage | null | undefined;
  readonly [member: string]: unknown;
}

/** Agent transport, final states: `Task`. */
export interface AgentTask {
  readonly id: string;
  readonly contextId?: string | null | undefined;
  readonly status: AgentTaskStatus;
  readonly artifacts?: readonly AgentArtifact[] | null | undefined;
  readonly [member: string]: unknown;
}

/** Agent transport, progress: `TaskStatusUpdateEvent`. */
export interface AgentTaskStatusUpdate {
  readonly taskId: string;
  readonly contextId?: string | null | undefined;
  readonly status: AgentTaskStatus;
  readonly [member: string]: unknown;
}
