// Writes the log of the process, one JSON object in each line (serve.md §3.4). `serve` makes it; the receiver and the
// sink log by it.
import type { Alarm, Logger } from '../index.ts';
import { isError } from './within.ts';

/** The log of the process: a logger for the receiver, and alarms. */
export interface JsonLog {
  readonly logger: Logger;
  /** Writes an alarm of serve itself, as one line. */
  readonly alarm: (alarm: Alarm) => void;
}

/** The longest line, characters. A longer one is written without its fields. */
const MAX_LINE = 65_536;

/** The JSON form of a value. An error becomes its parts. Bytes become their number, because they may be a body. */
function plain(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  // `toJSON` of bytes has already written them into `value`.
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
 * Characters that a terminal or a reader acts on, and that JSON leaves: DEL, C1, format characters, line separators.
 */
const ACTING = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const json = (value: object): string =>
  JSON.stringify(value, plain).replaceAll(
    ACTING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/**
 * The fields of a line about an alarm, with its code as `alarm`. A line about an answer 503 has a code and `docs` as
 * well, and stays.
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

/** Makes the log: one JSON object in each line (serve.md §3.4). */
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
