import type { AlarmCode, RefusedCode, UnavailableCode } from './codes.ts';

/** What to read about a code: a heading of a page that comes with the package. */
export const docsOf = (code: AlarmCode | RefusedCode | UnavailableCode): string => `docs/errors.md#${code}`;

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
