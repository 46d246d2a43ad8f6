import { ConfigError } from '../errors.ts';

/** A delivery that is ready to be sent: `fetch(url, { method, headers, body })`. */
export interface SignedDelivery {
  readonly method: 'POST';
  /** As given, not canonicalised. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were signed: send them as they are. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Bytes and text are sent as they are; anything else is serialised once, without white space. */
export type PayloadInput = Uint8Array | string | object;

/** @throws ConfigError where `JSON.stringify` gives nothing. */
export function payloadBytes(payload: PayloadInput): Uint8Array<ArrayBuffer> {
  if (payload instanceof Uint8Array) return new Uint8Array(payload);
  const text: string | undefined = typeof payload === 'string' ? payload : JSON.stringify(payload);
  if (typeof text !== 'string') throw new ConfigError('body: must be an object, a string or a Uint8Array.');
  return new TextEncoder().encode(text);
}

/** Adds `more`; a name that is there already, in any case, is replaced. */
export function mergeHeaders(
  headers: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const replaced = new Set(Object.keys(more).map((name) => name.toLowerCase()));
  const kept = Object.entries(headers).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...more };
}
