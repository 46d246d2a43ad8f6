// The common result of reading both transports: a draft of an event, or a failure of the envelope
// (verification.md §7.5).
// Made by `tool.ts`, `agent.ts` and `reading.ts`; taken by `assemble.ts`.

import type { EnvelopeCode } from '../shared/codes.ts';
import type { EventChannel, EventWarning, TaskStatus, Transport } from './event.ts';
import type { JsonObject } from '../codec/members.ts';

/** An envelope of either transport that passed the envelope rules. The kind of event is decided later. */
export interface Draft {
  readonly ok: true;
  readonly transport: Transport;
  /** Absent for a webhook. */
  readonly source?: EventChannel;
  readonly envelope: JsonObject;
  readonly idempotencyKey: string;
  readonly idempotencyKeySource: 'envelope' | 'metadata' | 'derived';
  readonly data: unknown;
  /** The status as sent; for the agent transport, normalised. */
  readonly status: string | undefined;
  /** The status, if it is a task status of this transport. */
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
   * True for an envelope of a task or a delivery report. Otherwise the event's kind is `other`, whatever the status
   * is.
   */
  readonly taskEnvelope: boolean;
  /** The name of the family, used if the event's kind becomes `other`. */
  readonly family: string | undefined;
  /** True if the body is meant as a delivery report. */
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
