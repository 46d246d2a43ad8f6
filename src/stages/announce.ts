// Raises alarms about facts that a delivery or an event revealed. None of them changes an answer.
// Called by the stages, the inbox, `observe` and the verifier; admission.md §2.14 says which alarms repeat.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { Event } from '../events/event.ts';
import type { Identity } from '../auth/auth-contract.ts';
import type { AcceptResult } from '../stores/store.ts';

/** For each limit of the store, the receiver options that raise the limit. */
const CAPS = {
  records: { option: 'maxRecordsPerSender', options: 'maxRecordsPerSender' },
  'pending-bytes': { option: 'maxPendingBytesPerSender', options: 'maxPendingBytesPerSender' },
  nonces: { option: 'maxNoncesPerKey', options: 'maxNoncesPerKey, maxNoncesPerSender or maxNonces' },
} as const;

/**
 * Raises an alarm if a limit was reached, or if an idempotency key came again with another payload. The sender's
 * edition decides if the store refuses such a payload.
 */
function announceRefusal(
  result: AcceptResult,
  { sender, key }: { readonly sender: string; readonly key: string | undefined },
  raiseAlarm: RaiseAlarm,
): void {
  if (result.kind === 'over-cap' || result.kind === 'rate-abuse') {
    const limit = result.kind === 'over-cap' ? result.limit : 'nonces';
    const { option, options } = CAPS[limit];
    const message = `the sender is over its cap of ${limit}: deliveries are answered 429. Unless this is a flood, raise ${options}`;
    raiseAlarm({ code: 'cap_reached', sender, limit, option, message });
  }
  const isConflict = result.kind === 'conflict';
  if (!result.endDropped && (isConflict || ('changed' in result && result.changed))) {
    const answer = isConflict ? "; 409, as the sender's edition says" : '';
    raiseAlarm({
      code: 'payload_changed',
      sender,
      key,
      ...(isConflict && { option: 'edition' }),
      message: `an idempotency_key was used again with another payload; the first copy is kept${answer}`,
    });
  }
}

/** Raises alarms about facts that a call of `Store.accept` revealed. They do not change the answer. */
export function announce(
  result: AcceptResult,
  { sender, key }: { readonly sender: string; readonly key: string | undefined },
  raiseAlarm: RaiseAlarm,
): void {
  for (const limit of result.pressure) {
    raiseAlarm({ code: 'cap_near', sender, limit, message: `80 % of the sender's cap of ${limit} is used` });
  }
  if (result.claimsDropped) {
    const message =
      'the sender reports too many media buys that nobody has registered: windows of further ones are not kept. Adopt those that run';
    raiseAlarm({ code: 'cap_near', sender, limit: 'unknown-media-buys', message });
  }
  if (result.stateDropped) {
    const message =
      'a media buy has over 100 open impairments, or a subscription over 1,000 open states: the oldest is kept no longer, and its end may not be told';
    raiseAlarm({ code: 'cap_near', sender, limit: 'states', message });
  }
  announceStep(result, raiseAlarm);
  announceRefusal(result, { sender, key }, raiseAlarm);
  if ('ahead' in result && result.ahead) {
    raiseAlarm({
      code: 'timestamp_ahead',
      sender,
      key,
      message:
        "the event's timestamp is more than 5 min ahead of the store's clock: it is applied, and later events are not compared with it",
    });
  }
}

/**
 * True if this call of `Store.accept` made the event DEAD, because it has no runs left. The caller then calls
 * `tellEnded`.
 */
export function hasDied(result: AcceptResult): boolean {
  return result.kind === 'done' && result.died;
}

/**
 * Raises an alarm if the store's clock was set back. The store limits how much this delays events that wait
 * (admission.md §4.11). Signatures are not affected, because they are judged by this receiver's clock.
 */
export function announceStep(
  { clockSteppedMs }: { readonly clockSteppedMs?: number },
  raiseAlarm: RaiseAlarm,
): void {
  if (clockSteppedMs === undefined) return;
  const message = `the store's clock was set back by ${Math.round(clockSteppedMs / 1000)} s: waiting events may run up to an hour late. Check the time service of its machine`;
  raiseAlarm({ code: 'clock_stepped', steppedMs: clockSteppedMs, message });
}

/**
 * A DEAD event (one that gets no more runs unless the owner redrives it): its names and its number of runs. Log lines
 * and `receiver.inbox` have the same members.
 */
export interface DeadEvent {
  readonly sender: string;
  readonly key: string;
  readonly deliveryId: string;
  readonly taskId?: string;
  readonly operationId?: string;
  /** `run` and `chargedAttempts` are the numbers that `ctx` had in the last run. */
  readonly run: number;
  readonly chargedAttempts: number;
  readonly lastError?: string;
}

export function raiseDead(event: DeadEvent, why: string, raiseAlarm: RaiseAlarm): void {
  raiseAlarm({ code: 'dead', ...event, message: `an event is DEAD and kept for you: ${why}` });
}

/**
 * Warns once per sender that legacy authentication will be removed in version 4.0. There is no warning for HMAC on
 * reports that the option `auth.reports` of the sender allows.
 */
export function announceLegacy(
  { sender, scheme }: Identity,
  seen: Set<string>,
  raiseAlarm: RaiseAlarm,
): void {
  const isLegacy = scheme !== 'signature' && sender.auth.scheme !== 'signature';
  if (!isLegacy || seen.has(sender.agentUrl)) return;
  seen.add(sender.agentUrl);
  raiseAlarm({
    code: 'legacy_auth_used',
    sender: sender.agentUrl,
    scheme,
    message: `the sender uses ${scheme}, deprecated in 3.x and removed in 4.0: ask it to sign (RFC 9421)`,
  });
}

/** Warnings about mistakes of the seller. They are in `event.warnings` and also raise an alarm. */
const NONCONFORMING: ReadonlySet<WarningCode> = new Set<WarningCode>([
  'wrapped_response',
  'report_has_aggregated_totals',
  'report_has_notification_id',
  'report_after_final',
  'report_too_wide',
  'invalid_delivery_report',
  'invalid_notification',
  'invalid_timestamp',
  'unknown_status',
  'completed_without_data',
  'operation_id_unknown',
  'operation_id_mismatch',
  'context_mismatch',
]);

/**
 * Raises alarms for the mistakes of an event that is about to be handled.
 * @param read the event as its delivery was read. For a wrong token in that, `checkToken` has raised the alarm.
 */
export function announceEvent(event: Event, raiseAlarm: RaiseAlarm, read: Event = event): void {
  const { sender, idempotencyKey: key } = event;
  for (const warning of event.warnings) {
    const { code, message } = warning;
    if (NONCONFORMING.has(code))
      raiseAlarm({ code: 'nonconforming_sender', sender, key, warning: code, message });
    // The check against the token of a registered call (`ofEvent`) only adds this warning. So its alarm is raised here.
    if (code === 'token_mismatch' && !read.warnings.includes(warning))
      raiseAlarm({ code, sender, key, message });
  }
}
