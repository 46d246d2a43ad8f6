// Writes the log of the process, one JSON object per line (serve.md §3.4). `serve` makes it; the receiver and the sink
// use it.
import type { Alarm, Logger } from '../index.ts';
import { isError } from './within.ts';

/** The log of the process: a logger for the receiver, and alarms. */
export interface JsonLog {
  readonly logger: Logger;
  /** Writes an alarm that `serve` itself raises, as one line. */
  readonly alarm: (alarm: Alarm) => void;
}

/** The longest line, in characters. A longer line is written without its fields. */
const MAX_LINE = 65_536;

/**
 * Returns the JSON form of a value. An error becomes an object with its name, message, code, stack and cause. Bytes are
 * replaced by their number, because they may be a body.
 */
function plain(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  // `value` is already the result of `toJSON`, so the original value is read.
  const raw = this[name];
  if (ArrayBuffer.isView(raw)) return `${raw.byteLength} bytes`;
  if (!isError(value)) return typeof value === 'bigint' ? String(value) : value;
  const { name: kind, message, stack, cause } = value;
  const { code } = value as { readonly code?: unknown };
  return {
    name: kind,
    message,
    ...(code !== undefined && { code }),
    stack,
    ...(cause !== undefined && { cause }),
  };
}

/**
 * Characters that JSON does not escape, but that change a terminal or the display: DEL, C1, format characters, line
 * separators.
 */
const ACTING = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const json = (value: object): string =>
  JSON.stringify(value, plain).replaceAll(
    ACTING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/**
 * Returns the fields of a log line. In a line about an alarm, `code` is renamed to `alarm`. A line about an answer 503
 * has `code` and `docs` too, but is no alarm, and stays unchanged.
 */
function told(fields: Readonly<Record<string, unknown>>): object {
  if (fields['docs'] === undefined || fields['kind'] === 'unavailable') return fields;
  const { code, ...rest } = fields;
  return { alarm: code, ...rest };
}

function lineOf(head: object, fields: object): string {
  try {
    const line = json({ ...head, ...told(fields as Readonly<Record<string, unknown>>), ...head });
    return line.length <= MAX_LINE ? line : json(head);
  } catch {
    return json(head);
  }
}

/** Makes the log: one JSON object per line (serve.md §3.4). */
export function jsonLog(write: (line: string) => void, now: () => number): JsonLog {
  const log =
    (level: 'info' | 'warn' | 'error') =>
    (fields: object, msg: string): void => {
      write(lineOf({ time: new Date(now()).toISOString(), level, msg }, fields));
    };
  const logger: Logger = {
    debug: () => undefined,
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
  };
  return {
    logger,
    alarm: ({ message, ...fields }) =>
      logger.warn({ ...fields, docs: `docs/alarms.md#${fields.code}` }, message),
  };
}
