// The types of alarms and loggers, and the page of the documentation that explains each code (admission.md §2.14).
// Used by all code that raises an alarm; `alarmRaiser` in `logging.ts` delivers alarms to the owner.

import type { AlarmCode, RefusedCode, UnavailableCode } from './codes.ts';

/** Returns the heading in docs/errors.md that explains the code of an answer. */
export const docsOf = (code: RefusedCode | UnavailableCode): string => `docs/errors.md#${code}`;

/** Alarm codes that are also codes of answers, so that docs/errors.md explains them. */
const OF_ANSWERS: Readonly<Record<AlarmCode & (RefusedCode | UnavailableCode), true>> = {
  unsupported_media_type: true,
  unsupported_content_encoding: true,
  payload_too_large: true,
  webhook_signature_header_malformed: true,
  webhook_signature_tag_invalid: true,
  webhook_signature_key_unknown: true,
  webhook_signature_key_revoked: true,
  webhook_signature_invalid: true,
  webhook_signature_digest_mismatch: true,
  webhook_mode_mismatch: true,
  challenge_refused: true,
  payload_changed: true,
  clock_skew: true,
  overloaded: true,
  misconfigured: true,
};

/**
 * Codes of alarms about calls to sellers, and about reports and the like that sellers owe. docs/call-alarms.md explains
 * them; docs/alarms.md explains the others.
 */
const OF_CALLS: ReadonlySet<AlarmCode> = new Set([
  'operation_orphaned',
  'answer_refused',
  'operation_refused',
  'task_unresolved',
  'task_unknown',
  'report_missing',
  'report_unrecoverable',
  'impairment_missed',
  'stream_unverifiable',
  'final_absent',
  'totals_differ',
  'subscription_lost',
  'subscription_refused',
  'retired_url_used',
  'registration_drift',
  'poll_failing',
]);

const isOfAnswers = (code: AlarmCode): code is keyof typeof OF_ANSWERS => Object.hasOwn(OF_ANSWERS, code);

/** Returns the heading in the package's documentation that explains an alarm. */
export const alarmDocsOf = (code: AlarmCode): string =>
  isOfAnswers(code) ? docsOf(code) : `docs/${OF_CALLS.has(code) ? 'call-alarms' : 'alarms'}.md#${code}`;

/**
 * A problem that an operator should look into, passed to `onAlarm` and written to the log. Further members depend on
 * the code.
 */
export interface Alarm {
  readonly code: AlarmCode;
  /** The text for the operator, never for a sender. */
  readonly message: string;
  /** The agent URL, if the alarm concerns a sender. */
  readonly sender?: string;
  readonly [detail: string]: unknown;
}

export type RaiseAlarm = (alarm: Alarm) => void;

/**
 * A logger that the package writes to: the option `logger` of `createReceiver`, `createVerifier` and
 * `createRegistrations`. It has pino's methods; `console` fits too.
 */
export interface Logger {
  /** Logs details for debugging. */
  debug(fields: object, message: string): void;
  /** Logs normal events: each delivery, each run. */
  info(fields: object, message: string): void;
  /** Logs events that may need attention: refusals, retries. */
  warn(fields: object, message: string): void;
  /** Logs faults on the receiver's side. */
  error(fields: object, message: string): void;
}
