import type { EnvelopeCode } from '../shared/codes.ts';
import type { EventChannel, EventWarning, TaskStatus, Transport } from './event.ts';
import type { JsonObject } from '../codec/members.ts';

/** What both transports come to: an envelope that passed its rules, before its kind is decided. */
export interface Draft {
  readonly ok: true;
  readonly transport: Transport;
  /** Absent: a webhook. */
  readonly source?: EventChannel;
  readonly envelope: JsonObject;
  readonly idempotencyKey: string;
  readonly idempotencyKeySource: 'envelope' | 'metadata' | 'derived';
  readonly data: unknown;
  /** As sent; agent transport: normalised. */
  readonly status: string | undefined;
  /** The same where it is a task status of this transport. */
  readonly taskStatus: TaskStatus | undefined;
  readonly taskId: string | undefined;
  readonly operationId: string | undefined;
  readonly taskType: string | undefined;
  readonly timestamp: string | undefined;
  readonly message: string | undefined;
  readonly context: unknown;
  readonly contextId: string | undefined;
  readonly notificationId: string | undefined;
  /** It is one of a task, or of a delivery report: else of kind `other`, whatever its status. */
  readonly taskEnvelope: boolean;
  /** What it is called where it comes to be of kind `other`. */
  readonly family: string | undefined;
  /** It claims to be a delivery report. */
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
