import { isJsonObject, type JsonObject } from '../../codec/members.ts';
import { UsageError } from '../usage-error.ts';

/** `value` where it is an object, for `?.`. */
export function asRecord(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

/** @throws UsageError where it is none. */
export function absoluteUrl(value: unknown, owner: string): string {
  if (typeof value === 'string' && /^https?:\/\/./i.test(value)) return value;
  throw new UsageError(`${owner} has no absolute request.url`);
}

/** Path and query as they stand in the text of a URL. */
export function targetOf(url: string): string {
  return /^[^:]+:\/\/[^/?#]*([^#]*)/.exec(url)?.[1] || '/';
}

/** A member that should be text. */
export function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' ? value : fallback;
}

/** What has a text of its own; an object's `toString` is whatever the capture says. */
const isPlain = (value: unknown): boolean => typeof value !== 'object' || value === null;

function pairOf(header: unknown): [string, string] | undefined {
  if (Array.isArray(header)) {
    const [name, value] = header as unknown[];
    return header.length === 2 && isPlain(name) && isPlain(value) ? [String(name), String(value)] : undefined;
  }
  const record = asRecord(header);
  return record && typeof record['name'] === 'string'
    ? [record['name'], textOr(record['value'], '')]
    : undefined;
}

/**
 * Headers as `{name, value}[]`, `[name, value][]`, or an object whose values are strings or lists of them.
 * @throws UsageError where they are missing or none of these.
 */
export function headerPairs(value: unknown, owner: string): [string, string][] {
  if (Array.isArray(value)) {
    const pairs = value.map(pairOf);
    if (pairs.every((pair) => pair !== undefined)) return pairs;
  }
  const record = asRecord(value);
  if (!record) throw new UsageError(`${owner} has no request.headers`);
  return Object.entries(record).flatMap(([name, lines]) =>
    [lines].flat().map((line): [string, string] => {
      if (isPlain(line)) return [name, String(line)];
      throw new UsageError(`${owner} has a header that is no text in request.headers`);
    }),
  );
}

/** Text is UTF-8. */
export function bodyBytes(text: unknown, base64 = false): Uint8Array {
  if (text === undefined || text === null) return new Uint8Array();
  if (typeof text !== 'string') throw new UsageError('the body is no string');
  return new Uint8Array(Buffer.from(text, base64 ? 'base64' : 'utf8'));
}
