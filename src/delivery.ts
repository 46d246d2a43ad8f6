import { ConfigError } from './errors.ts';

/** Header fields as received: lower-case name → the value of each line, in order, white space trimmed. */
export type HeaderFields = ReadonlyMap<string, readonly string[]>;

/** What users may pass as headers; `rawHeaders` and pairs keep repeated lines visible, the others may not. */
export type HeadersInput =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | readonly string[]
  | readonly (readonly [string, string])[]
  | ReadonlyMap<string, readonly string[]>;

/** One HTTP request as an adapter hands it over: nothing decoded, nothing normalised. */
export interface Delivery {
  /** Upper case, e.g. `POST`. */
  readonly method: string;
  /** Request target as received (`/path?query` or absolute), or undefined for the two-argument call. */
  readonly url: string | undefined;
  readonly headers: HeaderFields;
  readonly rawBody: Uint8Array;
}

function* arrayLines(input: readonly unknown[]): Iterable<readonly [string, string]> {
  const paired = input.every((item) => Array.isArray(item) && item.length === 2);
  if (!paired && (input.length % 2 !== 0 || input.some((item) => typeof item !== 'string'))) {
    throw new ConfigError(
      'headers: an array must be rawHeaders (name, value, name, value, …) or [name, value] pairs.',
    );
  }
  const flat = paired ? input.flat() : input;
  for (let i = 0; i < flat.length; i += 2) yield [String(flat[i]), String(flat[i + 1])];
}

function* headerLines(input: HeadersInput): Iterable<readonly [string, string]> {
  if (Array.isArray(input)) {
    yield* arrayLines(input);
    return;
  }
  const entries: Iterable<readonly [string, unknown]> =
    Symbol.iterator in input ? (input as Iterable<readonly [string, unknown]>) : Object.entries(input);
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    for (const line of Array.isArray(value) ? value : [value]) yield [name, String(line)];
  }
}

/**
 * RFC 9110 §5.5: optional white space (SP, HTAB) around a field value is no part of it. By index: a regular
 * expression for the end takes quadratic time on white space inside.
 */
function trimmed(value: string): string {
  const blank = (at: number): boolean => value[at] === ' ' || value[at] === '\t';
  let start = 0;
  let end = value.length;
  while (start < end && blank(start)) start += 1;
  while (end > start && blank(end - 1)) end -= 1;
  return value.slice(start, end);
}

/**
 * Reads any of the accepted header shapes into one map that keeps repeated lines.
 * @throws ConfigError where `input` is none of them.
 */
export function headerFields(input: unknown): HeaderFields {
  if (typeof input !== 'object' || input === null) {
    throw new ConfigError(
      'headers: pass a Headers object, req.headers, req.rawHeaders or [name, value] pairs.',
    );
  }
  const fields = new Map<string, string[]>();
  for (const [name, value] of headerLines(input as HeadersInput)) {
    const key = name.toLowerCase();
    const line = trimmed(value);
    const lines = fields.get(key);
    if (lines) lines.push(line);
    else fields.set(key, [line]);
  }
  return fields;
}

/** All lines of a field joined as RFC 9110 §5.3 and RFC 9421 §2.1 say, or undefined where it is absent. */
export function fieldValue(fields: HeaderFields, name: string): string | undefined {
  return fields.get(name)?.join(', ');
}

/**
 * Checks that the body is the bytes as received.
 * @throws ConfigError for a string or an object: re-serialised bytes never verify.
 */
export function requireRawBytes(rawBytes: unknown): Uint8Array {
  if (rawBytes instanceof Uint8Array) return rawBytes;
  const got =
    rawBytes === null ? 'null' : typeof rawBytes === 'object' ? 'an object' : `a ${typeof rawBytes}`;
  throw new ConfigError(
    `rawBytes must be a Uint8Array of the body exactly as received, got ${got}. A parsed or re-serialised body never verifies. ` +
      "Express: mount the receiver before express.json(), or use express.raw({ type: '*/*' }). Fastify: add a content-type parser with parseAs: 'buffer'. " +
      'Fetch API: new Uint8Array(await request.arrayBuffer()).',
  );
}
