// The result of reading a body of either transport (MCP or A2A): a draft of an event, or a failure of the envelope
// (verification.md §7.5).
// Made by `tool.ts`, `agent.ts` and `reading.ts`; taken by `assemble.ts`.

import type { EnvelopeCode } from '../shared/codes.ts';
import type { EventChannel, EventWarning, TaskStatus, Transport } from './event.ts';
import type { JsonObject } from '../codec/members.ts';

/** An envelope of either transport that passed the envelope rules. The kind of event is decided later. */
export interface Draft {
  readonly ok: true;
  readonly transport: Transport;
  /** The channel, e.g. `poll`, of a body that did not come by a webhook. Absent for a webhook. */
  readonly source?: EventChannel;
  readonly envelope: JsonObject;
  readonly idempotencyKey: string;
  readonly idempotencyKeySource: 'envelope' | 'metadata' | 'derived';
  readonly data: unknown;
  /** The status as sent. For the agent transport it is normalised, e.g. `TASK_STATE_WORKING` to `working`. */
  readonly status: string | undefined;
  /** The same as `status` if that is a known task status; otherwise undefined. */
  readonly taskStatus: TaskStatus | undefined;
  readonly taskId: string | undefined;
  readonly operationId: string | undefined;
  readonly taskType: string | undefined;
  readonly timestamp: string | undefined;
  readonly message: string | undefined;
  readonly context: unknown;
  readonly contextId: string | undefined;
  readonly notificationId: string | undefined;
  /**
   * True for an envelope of a task or a delivery report. Any other body becomes an event of kind `other`, whatever its
   * status is.
   */
  readonly taskEnvelope: boolean;
  /** The name of the notification family, used if the event's kind becomes `other`. */
  readonly family: string | undefined;
  /** True if the sender means the body as a delivery report, even if it is not a valid one. */
  readonly reportShaped: boolean;
  readonly warnings: readonly EventWarning[];
}

/**
 * A result of `readEvent` for a body that is JSON but not a valid webhook, e.g. without an idempotency key. A
 * receiver answers it with 400. `detail` is for the operator's log.
 */
export interface EnvelopeFailure {
  readonly ok: false;
  readonly code: EnvelopeCode;
  readonly detail: string;
}

export function envelopeFailure(code: EnvelopeCode, detail: string): EnvelopeFailure {
  return { ok: false, code, detail };
}
