// A webhook that is ready to be sent: its bytes, its header fields, and the check that no member occurs twice in its
// body.
// Called by the three signing functions, by fake sellers and by the command `send`.

import { parseStrictJson } from '../codec/strict-json.ts';
import { ConfigError } from '../shared/errors.ts';
import { isBytes } from '../shared/realms.ts';

/**
 * A signed webhook that is ready to be sent with `fetch(url, { method, headers, body })`. The functions of
 * `proto-webhooks/sender` return it.
 */
export interface SignedDelivery {
  readonly method: 'POST';
  /** The webhook URL as given, not canonicalised. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were signed. Send them unchanged. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * The body of a webhook to send, as the functions of `proto-webhooks/sender` and a fake seller take it. Bytes and
 * text are sent unchanged; an object is serialised once as JSON without white space.
 */
export type PayloadInput = Uint8Array | string | object;

/**
 * Returns the bytes of a body; an object is serialised as JSON.
 * @throws ConfigError if `JSON.stringify` returns nothing.
 */
export function payloadBytes(payload: PayloadInput): Uint8Array<ArrayBuffer> {
  if (isBytes(payload)) return new Uint8Array(payload);
  const text: string | undefined = typeof payload === 'string' ? payload : JSON.stringify(payload);
  if (typeof text !== 'string') throw new ConfigError('body: must be an object, a string or a Uint8Array.');
  return new TextEncoder().encode(text);
}

/** The signing options that concern the body. */
export interface SigningInput {
  readonly body: PayloadInput;
  /**
   * If true, a body that has a member twice is signed, which every receiver refuses. Use it for tests of receivers.
   * Default: false.
   */
  readonly allowMalformed?: boolean;
}

/**
 * Returns the bytes to sign. A body that has a member twice is refused: a signature over it proves nothing, because
 * readers take different values (verification.md §2.14).
 * @throws ConfigError for such a body, unless `allowMalformed` is true.
 */
export function bytesToSign({ body, allowMalformed = false }: SigningInput): Uint8Array<ArrayBuffer> {
  const bytes = payloadBytes(body);
  if (allowMalformed) return bytes;
  const json = parseStrictJson(bytes);
  if (json.ok || json.twice === undefined) return bytes;
  throw new ConfigError(
    `body: an object in it has a member twice: ${json.twice}. Receivers refuse it (webhook_body_malformed): write each member once. For tests of receivers set allowMalformed: true.`,
  );
}

/**
 * Returns the headers together with `added`. A field in `added` replaces the field with the same name, in upper or
 * lower case.
 */
export function mergeHeaders(
  headers: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const replaced = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const kept = Object.entries(headers).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...added };
}
