// The webhook that is ready to be sent: its bytes, header fields and the check that no member is there twice.
// Called by the three signing functions, by fake sellers and by the command line's `send`.

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

/** @throws ConfigError if `JSON.stringify` returns nothing. */
export function payloadBytes(payload: PayloadInput): Uint8Array<ArrayBuffer> {
  if (isBytes(payload)) return new Uint8Array(payload);
  const text: string | undefined = typeof payload === 'string' ? payload : JSON.stringify(payload);
  if (typeof text !== 'string') throw new ConfigError('body: must be an object, a string or a Uint8Array.');
  return new TextEncoder().encode(text);
}

/** The part of a signer's options that is about the body. */
export interface SigningInput {
  readonly body: PayloadInput;
  /**
   * If true, signs a body that repeats a member, which every receiver refuses. It is for tests of receivers.
   * Default: false.
   */
  readonly allowMalformed?: boolean;
}

/**
 * Bytes to sign. A signature over a repeated member proves nothing, because readers take different values
 * (verification.md §2.14).
 * @throws ConfigError for such a body, unless it is allowed.
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

/** Adds `added`, which replaces fields of the same name in any case. */
export function mergeHeaders(
  headers: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const replaced = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const kept = Object.entries(headers).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...added };
}
