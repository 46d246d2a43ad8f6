// Defines a capture (a recorded delivery), and reads the parts that all forms of captures have: URL, headers, body. The
// readers of the four forms call these functions; `proto-webhooks explain` works on captures.
import { isJsonObject, type JsonObject } from '../../codec/members.ts';
import { UsageError } from '../shell.ts';

/** A recorded delivery, with only those parts that were recorded. */
export interface Capture {
  readonly form: 'raw HTTP' | 'HAR entry' | 'curl command' | 'vector';
  /** The method, in upper case. */
  readonly method: string;
  /** The absolute URL; undefined if the capture has only a request target. */
  readonly url: string | undefined;
  /** The request target as captured, e.g. `/hook?x=1`. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** Present if the delivery was refused because of its headers, so that its body was not read. */
  readonly bodyless?: true;
  /** The time of receipt, if the capture has it. Unix ms. */
  readonly receivedAt?: number;
  /**
   * The whole conformance vector (test case), if the capture was read from one. `explain` reads the senders from it.
   */
  readonly vector?: JsonObject;
  /** Notes for the user about parts of the input that were left out or guessed. They may influence the result. */
  readonly notes: readonly string[];
}

/** Returns `value` if it is an object, otherwise undefined, so that `?.` can follow. */
export function asRecord(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

/** Returns the value if it is an absolute URL. @throws UsageError for any other value. */
export function absoluteUrl(value: unknown, owner: string): string {
  if (typeof value === 'string' && /^https?:\/\/./i.test(value)) return value;
  throw new UsageError(`${owner} has no absolute request.url`);
}

/** Returns the path and query of a URL, without changing their text. */
export function targetOf(url: string): string {
  return /^[^:]+:\/\/[^/?#]*([^#]*)/.exec(url)?.[1] || '/';
}

/** Returns the value if it is text, otherwise `fallback`. */
export function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' ? value : fallback;
}

/**
 * True for a primitive value, which is safe to turn into text. An object of the capture may have its own `toString`.
 */
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
 * Returns the headers. They are given as `{name, value}[]`, `[name, value][]`, or an object whose values are strings or
 * lists of strings.
 * @throws UsageError if they are missing or have another form.
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

/** Returns the bytes of a body. Text is encoded as UTF-8. */
export function bodyBytes(text: unknown, base64 = false): Uint8Array {
  if (text === undefined || text === null) return new Uint8Array();
  if (typeof text !== 'string') throw new UsageError('the body must be a string');
  return new Uint8Array(Buffer.from(text, base64 ? 'base64' : 'utf8'));
}

/**
 * Returns the error for a body that is shorter than declared.
 * @param there the number of bytes that the capture has.
 * @param told the number of bytes that the body should have.
 */
export function cutShort(there: number, told: number): UsageError {
  return new UsageError(`cut short inside the body: ${told - there} of its ${told} bytes are missing`);
}

/** Returns the numbers in the Content-Length lines. */
export function contentLengths(headers: readonly (readonly [string, string])[]): number[] {
  const lines = headers.filter(([name]) => name.toLowerCase() === 'content-length');
  return lines
    .map(([, value]) => value.trim())
    .flatMap((value) => (/^\d{1,15}$/.test(value) ? [Number(value)] : []));
}

/**
 * Checks that the body is complete. It may have more bytes than declared, because exporters decode compressed bodies.
 * @throws UsageError if the body has fewer bytes than declared.
 */
export function requireWhole(body: Uint8Array, told: readonly number[]): void {
  const most = Math.max(0, ...told);
  if (body.length < most) throw cutShort(body.length, most);
}
