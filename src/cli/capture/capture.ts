import { isJsonObject, type JsonObject } from '../../codec/members.ts';
import { UsageError } from '../shell.ts';

/** One delivery as somebody captured it, and no more than the capture has. */
export interface Capture {
  readonly form: 'raw HTTP' | 'HAR entry' | 'curl command' | 'vector';
  /** Upper case as captured. */
  readonly method: string;
  /** Absolute, or undefined where the capture has only a request target. */
  readonly url: string | undefined;
  /** Request target as captured, e.g. `/hook?x=1`. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** It was refused by its headers, and its body was not read. */
  readonly bodyless?: true;
  /** Unix ms, where the capture says when. */
  readonly receivedAt?: number;
  /** Of a vector all of it: it says who may send, too. */
  readonly vector?: JsonObject;
  /** What was done to read it that could matter. */
  readonly notes: readonly string[];
}

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

/** What has a text of its own. The `toString` of an object may be a member of the capture. */
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
      throw new UsageError(`${owner} has a header that is not text in request.headers`);
    }),
  );
}

/** Text is UTF-8. */
export function bodyBytes(text: unknown, base64 = false): Uint8Array {
  if (text === undefined || text === null) return new Uint8Array();
  if (typeof text !== 'string') throw new UsageError('the body must be a string');
  return new Uint8Array(Buffer.from(text, base64 ? 'base64' : 'utf8'));
}

/** @param there bytes of the body that the capture has; `told`: how many it is said to have. */
export function cutShort(there: number, told: number): UsageError {
  return new UsageError(`cut short inside the body: ${told - there} of its ${told} bytes are missing`);
}

/** What the Content-Length lines say, where they are numbers. */
export function contentLengths(headers: readonly (readonly [string, string])[]): number[] {
  const lines = headers.filter(([name]) => name.toLowerCase() === 'content-length');
  return lines
    .map(([, value]) => value.trim())
    .flatMap((value) => (/^\d{1,15}$/.test(value) ? [Number(value)] : []));
}

/**
 * More bytes than were told are not a fault of a capture: exporters decode what was compressed.
 * @throws UsageError where there are fewer.
 */
export function requireWhole(body: Uint8Array, told: readonly number[]): void {
  const most = Math.max(0, ...told);
  if (body.length < most) throw cutShort(body.length, most);
}
