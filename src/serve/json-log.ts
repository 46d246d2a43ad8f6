import type { Alarm, Logger } from '../index.ts';

/** Lines of the process: a logger for the receiver, and alarms. */
export interface JsonLog {
  readonly logger: Logger;
  /** An alarm of serve's own: one line. */
  readonly alarm: (alarm: Alarm) => void;
}

/** Characters of a line: what is longer is told without its fields. */
const MAX_LINE = 65_536;

/** An error's text; bytes as their number, for they may be a body; the rest as JSON has it. */
function plain(_: string, value: unknown): unknown {
  if (value instanceof Error) {
    const { name, message, stack, cause } = value;
    const { code } = value as { readonly code?: unknown };
    return {
      name,
      message,
      ...(code !== undefined && { code }),
      stack,
      ...(cause !== undefined && { cause }),
    };
  }
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  return typeof value === 'bigint' ? String(value) : value;
}

function lineOf(head: object, fields: object): string {
  try {
    const line = JSON.stringify({ ...head, ...fields, ...head }, plain);
    return line.length <= MAX_LINE ? line : JSON.stringify(head);
  } catch {
    return JSON.stringify(head);
  }
}

/** A line of the receiver about an alarm has its code and where that is explained; the line of an answer 503 does too. */
const isAlarm = (fields: { readonly docs?: unknown; readonly kind?: unknown }): boolean =>
  fields.docs !== undefined && fields.kind !== 'unavailable';

/** One JSON object a line (serve.md §3.4). */
export function jsonLog(write: (line: string) => void, now: () => number): JsonLog {
  const log =
    (level: 'info' | 'warn' | 'error') =>
    (fields: object, msg: string): void => {
      const { code, ...rest } = fields as { readonly code?: unknown };
      const told = isAlarm(fields) ? { alarm: code, ...rest } : fields;
      write(`${lineOf({ time: new Date(now()).toISOString(), level, msg }, told)}\n`);
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
