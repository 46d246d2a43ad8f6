import type { AlarmCode, RefusedCode, UnavailableCode } from './codes.ts';

/** Names the heading of docs/errors.md about the code of an answer. */
export const docsOf = (code: RefusedCode | UnavailableCode): string => `docs/errors.md#${code}`;

/** Codes of alarms that are codes of answers too: docs/errors.md has them, docs/alarms.md the others. */
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

const isOfAnswers = (code: AlarmCode): code is keyof typeof OF_ANSWERS => Object.hasOwn(OF_ANSWERS, code);

/** Names the heading of a page of the package about an alarm. */
export const alarmDocsOf = (code: AlarmCode): string =>
  isOfAnswers(code) ? docsOf(code) : `docs/alarms.md#${code}`;

/** What `onAlarm` gets, and the log. Members beside these depend on the code. */
export interface Alarm {
  readonly code: AlarmCode;
  /** For the owner, never for a sender. */
  readonly message: string;
  /** Agent URL, where one is concerned. */
  readonly sender?: string;
  readonly [detail: string]: unknown;
}

export type RaiseAlarm = (alarm: Alarm) => void;

/** pino's shape; `console` fits too. */
export interface Logger {
  /** For finding faults. */
  debug(fields: object, message: string): void;
  /** What happened, as it should: each delivery, each run. */
  info(fields: object, message: string): void;
  /** What may need a look: refusals, retries. */
  warn(fields: object, message: string): void;
  /** A fault on this side. */
  error(fields: object, message: string): void;
}
