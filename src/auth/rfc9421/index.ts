// The entry `proto-webhooks/rfc9421`: the signature profile for tools that sign, inspect or verify single
// messages.
// The profile is RFC 9421, narrowed by contract.md §5.2 to §5.10; `verifySignature` performs its checks with
// one key.

import { utf8 } from '../../codec/encoding.ts';
import type { SignatureAlgorithm } from '../../crypto/algorithms.ts';
import type { CryptoEngine, Hashes, Jwk } from '../../crypto/engine.ts';
import { createEngine } from '../../crypto/index.ts';
import { loadHashes } from '../../crypto/native-hashes.ts';
import { type Delivery, headerFields, type HeadersInput } from '../../shared/delivery.ts';
import { type Refusal, refused } from '../../shared/outcome.ts';
import { editionFor, type EditionName, purposesOf } from '../../shared/editions.ts';
import { protocolsFor } from '../../shared/wire-names.ts';
import type { Target } from '../auth-contract.ts';
import { checkSignatureHeaders } from './checks.ts';
import { digestMatches } from './content-digest.ts';
import { compareHost } from './host.ts';
import { usableKey } from './key-policy.ts';
import { canonicalTargetUri, signatureBase } from './signature-base.ts';

export type { SignatureAlgorithm } from '../../crypto/algorithms.ts';
export type { CryptoEngine, Hashes, Jwk, Sha256Stream, VerifyKey } from '../../crypto/engine.ts';
export type { EngineOptions } from '../../crypto/index.ts';
export { createEngine } from '../../crypto/index.ts';
export type { UseThreadPool, PoolState } from '../../crypto/pool.ts';
export type { HeaderFields, HeadersInput } from '../../shared/delivery.ts';
export type { Refusal } from '../../shared/outcome.ts';
export type { Target } from '../auth-contract.ts';
export type { RequestFacts } from './signature-base.ts';
export { signatureBase } from './signature-base.ts';
export type { SignatureInput, SignatureParameters } from './signature-input.ts';
export { parseSignatureInput } from './signature-input.ts';
export { TargetUriError } from './host.ts';
export { canonicalTargetUri } from './signature-base.ts';

/**
 * The request whose signature `verifySignature` checks: method, headers and body as received, and the URL that the
 * sender was given.
 */
export interface SignedMessage {
  readonly method: string;
  /** The absolute URL that the sender was given. The signature must cover its canonical form as `@target-uri`. */
  readonly url: string;
  readonly headers: HeadersInput;
  /** The body exactly as received. If it is absent, `Content-Digest` is read but compared with nothing. */
  readonly body?: Uint8Array;
}

/** Options of `verifySignature`: the protocol name and edition, the clock, and the crypto engine. */
export interface VerifySignatureOptions {
  /**
   * The only name accepted in the tag and the key purpose. Default: both known names, `proto` and `adcp`; tag and
   * purpose must then agree.
   */
  readonly protocol?: string | undefined;
  /**
   * The protocol edition, which decides the accepted key purposes. Default: `webhook-signing`, and for `adcp` also
   * `request-signing`.
   */
  readonly edition?: EditionName;
  /** Returns the current time, Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
  /**
   * The crypto engine. Default: the fastest of the runtime. For many calls make one with `createEngine` and pass it
   * in.
   */
  readonly engine?: CryptoEngine;
  readonly hashes?: Hashes;
}

/**
 * The result of `verifySignature` for a signature that passed all checks: its key id, nonce and times (Unix
 * seconds). Replays are not detected: you must remember `nonce`.
 */
export interface VerifiedSignature {
  readonly kind: 'verified';
  readonly keyid: string;
  readonly nonce: string;
  readonly alg: SignatureAlgorithm;
  /** The time of signing, Unix seconds. */
  readonly created: number;
  /** The time after which the signature is invalid, Unix seconds. */
  readonly expires: number;
  /** The covered components, in their order. */
  readonly components: readonly string[];
}

function targetOf(url: string): Target | undefined {
  try {
    return canonicalTargetUri(url);
  } catch {
    return undefined;
  }
}

/**
 * Performs the part of check 10 before the signature itself: checks the target and `Host`, and returns the encoded
 * signature base.
 */
function baseOf(
  delivery: Delivery,
  url: string,
  components: readonly string[],
  params: string,
): Uint8Array | Refusal {
  const target = targetOf(url);
  if (!target) return refused('webhook_target_uri_malformed', 'The URL has no canonical form.', 10);
  if (compareHost(delivery, target, 'strict').kind !== 'same') {
    return refused('webhook_target_uri_malformed', 'Host does not name the authority of the URL.', 10);
  }
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const base = signatureBase(components, facts, params);
  if (base === undefined)
    return refused('webhook_signature_components_incomplete', 'No signature base can be built.', 6);
  return utf8(base);
}

/**
 * Verifies the signature of one webhook against one public key: RFC 9421, with the components and parameters that
 * the protocol requires. It checks the fields, tag, algorithm, time window, covered components, key purpose,
 * signature and body digest.
 *
 * It does not fetch keys, check revocation or detect replays; `createReceiver` does all three. Use it for tools and
 * for receivers of your own.
 * @param jwk the public key as its seller publishes it. The caller makes sure that it is the key that `keyid`
 *   names.
 * @returns `kind: 'verified'`, or a refusal with the code and the number of the first check that failed.
 * @throws ConfigError (rejects) for unusable `headers` or options; never for anything that a sender can send.
 * @example
 * ```ts
 * import { type SignedMessage, verifySignature } from 'proto-webhooks/rfc9421';
 * import type { Jwk } from 'proto-webhooks';
 *
 * export async function isAuthentic(message: SignedMessage, jwk: Jwk): Promise<boolean> {
 *   const result = await verifySignature(message, jwk);
 *   if (result.kind !== 'verified') console.warn(result.code);
 *   return result.kind === 'verified';
 * }
 * ```
 */
export async function verifySignature(
  message: SignedMessage,
  jwk: Jwk,
  options: VerifySignatureOptions = {},
): Promise<VerifiedSignature | Refusal> {
  const { engine = await createEngine(), hashes = await loadHashes(), now = Date.now } = options;
  const headers = headerFields(message.headers);
  const signed = checkSignatureHeaders(headers, protocolsFor(options.protocol), now());
  if (signed.kind === 'refused') return signed;
  const { protocol, components, parameters, signature, digest } = signed;
  const policy = {
    protocol,
    purposes: purposesOf(editionFor(options.edition), protocol),
    alg: parameters.alg,
  };
  const key = usableKey(jwk, await engine.importKey(jwk), policy);
  if (typeof key === 'string') return refused('webhook_signature_key_purpose_invalid', `The JWK: ${key}.`, 8);
  const { method, url, body } = message;
  // There is no request target here that could contradict `Host`. But `Host` must still match the URL.
  const delivery = { method, url: undefined, headers, rawBody: body ?? new Uint8Array() };
  const base = baseOf(delivery, url, components, signed.signatureParams);
  if ('kind' in base) return base;
  if (!(await engine.verify(key, base, signature))) {
    return refused('webhook_signature_invalid', 'The signature does not verify.', 10);
  }
  if (body && !digestMatches(digest, body, hashes)) {
    return refused('webhook_signature_digest_mismatch', 'Content-Digest does not match the body.', 11);
  }
  const { keyid, nonce, alg, created, expires } = parameters;
  return { kind: 'verified', keyid, nonce, alg, created, expires, components };
}
