import type { FailRequest } from '../contract.ts';
import { MARK_RETENTION_MS } from '../contract.ts';
import { columnText } from '../text.ts';
import type { Arg } from './client.ts';

/** What a script is told, by the names in its header; what is undefined or false is left out. */
export type Values = Readonly<Record<string, string | number | boolean | Uint8Array | undefined>>;

/**
 * Names and values by turns. Redis takes any bytes but clients send UTF-8: texts that would not come back as they were
 * (lone surrogates) are encoded, so that distinct ones stay distinct.
 */
export function argsOf(values: Values): Arg[] {
  const args: Arg[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === false) continue;
    args.push(name, argOf(value));
  }
  return args;
}

function argOf(value: string | number | true | Uint8Array): Arg {
  if (typeof value === 'string') return columnText(value);
  if (typeof value === 'number') return value;
  if (value === true) return '1';
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

/** `FailRequest.error`: at most 1 000 characters. */
const LAST_ERROR_MOST = 1000;

/** Marks and notification ids outlive the records that made them. Ms. */
export function markMs(retentionMs: number): number {
  return Math.max(retentionMs, MARK_RETENTION_MS);
}

/** Of the script `fail`. */
export function failValues(request: FailRequest): Values {
  const { key, owner, permanent, unstarted, retry, backoffMs, error, retentionMs } = request;
  const lastError = error?.slice(0, LAST_ERROR_MOST);
  return {
    key,
    owner,
    permanent,
    unstarted,
    attempts: retry.attempts,
    backoffMs,
    error: lastError,
    retentionMs,
  };
}
