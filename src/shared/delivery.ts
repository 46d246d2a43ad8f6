// A delivery as an adapter passes it on, and the forms of headers and body that callers may pass (admission.md §2.8).
// Used at the arrival of every delivery, by code that signs, and by tools that read captured requests.

import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from './errors.ts';
import { isBytes } from './realms.ts';

/**
 * The header fields of a request as received, e.g. in `RefusedDelivery` and `RequestFacts`. A lower-case name maps
 * to the value of each line, in order, with white space trimmed.
 */
export type HeaderFields = ReadonlyMap<string, readonly string[]>;

/**
 * The forms in which you can pass the headers of a request, e.g. to `receiver.verifyAndDispatch`. They are
 * `Headers`, an object, a map, Node's `rawHeaders`, or a list of pairs. `rawHeaders` and lists of pairs keep
 * repeated lines visible; the other forms may not.
 */
export type HeadersInput =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | readonly string[]
  | readonly (readonly [string, string])[]
  | ReadonlyMap<string, readonly string[]>;

/** One HTTP request without its body, as an adapter passes it on. Nothing in it is decoded or normalised. */
export interface Head {
  /** The method in upper case, e.g. `POST`. */
  readonly method: string;
  /** Request target as received (`/path?query` or absolute). Undefined if the caller passed no request. */
  readonly url: string | undefined;
  /** True if a platform has rewritten `url`, as in `RequestInfo.urlNormalised`. */
  readonly urlNormalised?: boolean;
  readonly headers: HeaderFields;
}

/** One HTTP request with its body. */
export interface Delivery extends Head {
  readonly rawBody: Uint8Array;
}

type Fields = Map<string, string[]>;

/** Maps common spellings of header names to lower case, so that these names are not converted for each delivery. */
const COMMON_NAMES: ReadonlyMap<string, string> = new Map(
  [
    'Host',
    'User-Agent',
    'Accept',
    'Accept-Encoding',
    'Connection',
    'Content-Type',
    'Content-Length',
    'Content-Digest',
    'Signature-Input',
    'Signature',
  ].flatMap((name) => [name, name.toLowerCase()].map((spelling) => [spelling, name.toLowerCase()])),
);

function addLine(fields: Fields, name: string, value: string): void {
  const key = COMMON_NAMES.get(name) ?? name.toLowerCase();
  const lines = fields.get(key);
  if (lines === undefined) fields.set(key, [trimmed(value)]);
  else lines.push(trimmed(value));
}

/** Reads alternating names and values, as in `rawHeaders`. Returns false if the list is not of this form. */
function addFlat(fields: Fields, input: readonly unknown[]): boolean {
  if (input.length % 2 !== 0) return false;
  for (let i = 0; i < input.length; i += 2) {
    const name = input[i];
    const value = input[i + 1];
    if (typeof name !== 'string' || typeof value !== 'string') return false;
    addLine(fields, name, value);
  }
  return true;
}

/** Reads pairs of a name and a value. Returns false if the list is not of this form. */
function addPairs(fields: Fields, input: readonly unknown[]): boolean {
  for (const pair of input) {
    if (!Array.isArray(pair) || pair.length !== 2) return false;
    addLine(fields, String(pair[0]), String(pair[1]));
  }
  return true;
}

function addArray(fields: Fields, input: readonly unknown[]): void {
  const add = typeof input[0] === 'string' ? addFlat : addPairs;
  if (add(fields, input)) return;
  throw new ConfigError(
    'headers: an array must be rawHeaders (name, value, name, value, …) or [name, value] pairs.',
  );
}

function addEntries(fields: Fields, input: HeadersInput): void {
  const entries: Iterable<readonly [string, unknown]> =
    Symbol.iterator in input ? (input as Iterable<readonly [string, unknown]>) : Object.entries(input);
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    for (const line of Array.isArray(value) ? value : [value]) addLine(fields, name, String(line));
  }
}

const SPACE = 0x20;
const TAB = 0x09;

/**
 * Removes white space (SP, HTAB) around a field value, which is not part of the value (RFC 9110 §5.5). The characters
 * are compared one by one, because a regular expression would take quadratic time on white space inside the value.
 */
function trimmed(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start += 1;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === value.length ? value : value.slice(start, end);
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB;

/**
 * Reads any of the accepted header shapes into one map that keeps repeated lines.
 * @throws ConfigError if `input` has none of these shapes.
 */
export function headerFields(input: unknown): HeaderFields {
  if (typeof input !== 'object' || input === null) {
    throw new ConfigError(
      'headers: pass a Headers object, req.headers, req.rawHeaders or [name, value] pairs.',
    );
  }
  const fields: Fields = new Map();
  if (Array.isArray(input)) addArray(fields, input);
  else addEntries(fields, input as HeadersInput);
  return fields;
}

/**
 * Returns the method in upper case, like `@method` (verification.md §4.10); `POST` if none is given. Only ASCII letters
 * are converted, so that no other letter becomes an ASCII one.
 * @throws ConfigError if `given` is not a string.
 */
export function methodOf(given: unknown): string {
  const method = given ?? 'POST';
  if (typeof method !== 'string') throw new ConfigError('method: pass request.method, a string.');
  return method === 'POST' ? method : method.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Returns all lines of a header joined as RFC 9110 §5.3 and RFC 9421 §2.1 say; undefined if the header is absent. */
export function fieldValue(fields: HeaderFields, name: string): string | undefined {
  const lines = fields.get(name);
  return lines?.length === 1 ? lines[0] : lines?.join(', ');
}

/**
 * Checks that the body is the received bytes.
 * @throws ConfigError for a string or an object: re-serialised bytes never verify.
 */
export function requireRawBytes(rawBytes: unknown): Uint8Array {
  if (isBytes(rawBytes)) return rawBytes;
  const got =
    rawBytes === null ? 'null' : typeof rawBytes === 'object' ? 'an object' : `a ${typeof rawBytes}`;
  throw new ConfigError(
    `rawBytes must be a Uint8Array of the body exactly as received, got ${got}. A parsed or re-serialised body never verifies. ` +
      "Express: mount the receiver before express.json(), or use express.raw({ type: '*/*' }). Fastify: add a content-type parser with parseAs: 'buffer'. " +
      'Fetch API: new Uint8Array(await request.arrayBuffer()).',
  );
}

/**
 * Returns the UUID version 8 (RFC 9562 §5.8) of SHA-256(sender, NUL, idempotency key). It is the same on every retry,
 * so it can be used as a job id or an upsert key.
 */
export function deliveryId(hashes: Hashes, sender: string, idempotencyKey: string): string {
  const digest = hashes.sha256Hex(`${sender}\0${idempotencyKey}`);
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(16), 16) & 3);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
