import { utf8 } from '../../codec/encoding.ts';
import { createEngine } from '../../crypto/index.ts';
import { loadHashes } from '../../crypto/native-hashes.ts';
import type { CryptoEngine, Hashes, Jwk, SignatureAlgorithm } from '../../crypto/engine.ts';
import { type Delivery, headerFields, type HeadersInput } from '../../delivery.ts';
import { editionFor, type EditionName, protocolFor } from '../../protocol.ts';
import type { Refusal } from '../../outcome.ts';
import type { Target } from '../contract.ts';
import { checkSignatureHeaders } from './checks.ts';
import { digestMatches } from './content-digest.ts';
import { compareHost } from './host.ts';
import { usableKey } from './key-policy.ts';
import { refuse } from './refuse.ts';
import { canonicalTargetUri, signatureBase } from './signature-base.ts';

/** A request as it was received, with the URL that its sender was given. */
export interface SignedMessage {
  readonly method: string;
  /** Absolute. What the signature must cover as `@target-uri`; canonicalised here. */
  readonly url: string;
  readonly headers: HeadersInput;
  /** The body exactly as received. Left out: `Content-Digest` is read but compared with nothing (no check 11). */
  readonly body?: Uint8Array;
}

/** `verifySignature`'s options. */
export interface VerifySignatureOptions {
  /** Name in tag and key purpose. `proto`. */
  readonly protocol?: string;
  /** Decides which key purposes are accepted. `3.0`. */
  readonly edition?: EditionName;
  /** Unix ms. `Date.now`. */
  readonly now?: () => number;
  /** The fastest of the runtime by default; `createEngine` gives one to hand in, chosen once for many calls. */
  readonly engine?: CryptoEngine;
  readonly hashes?: Hashes;
}

/** A signature that passed. Its nonce was not looked up: replays are the caller's to find. */
export interface VerifiedSignature {
  readonly kind: 'verified';
  readonly keyid: string;
  readonly nonce: string;
  readonly alg: SignatureAlgorithm;
  /** Unix seconds. */
  readonly created: number;
  /** Unix seconds. */
  readonly expires: number;
  /** Covered components, in order. */
  readonly components: readonly string[];
}

function targetOf(url: string): Target | undefined {
  try {
    return canonicalTargetUri(url);
  } catch {
    return undefined;
  }
}

/** Check 10 up to the signature: the target, `Host`, and the base, encoded. */
function baseOf(
  delivery: Delivery,
  url: string,
  components: readonly string[],
  params: string,
): Uint8Array | Refusal {
  const target = targetOf(url);
  if (!target) return refuse(10, 'webhook_target_uri_malformed', 'The URL has no canonical form.');
  if (compareHost(delivery, target, 'strict').kind !== 'same') {
    return refuse(10, 'webhook_target_uri_malformed', 'Host does not name the authority of the URL.');
  }
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const base = signatureBase(components, facts, params);
  if (base === undefined) return refuse(6, 'webhook_signature_components_incomplete', 'There is no base.');
  return utf8(base);
}

/**
 * Verifies one message against one key: checks 1 to 6, 8, 10 and 11 (verification.md §2.1 to §2.6, §2.8,
 * §2.10, §2.11). For tools and for other receivers; `createReceiver` adds key resolution, revocation and replay protection.
 * @param jwk the public key as its seller publishes it; whether it is the one that `keyid` names is the caller's to know.
 * @returns `kind: 'verified'`, or a refusal with the code and number of the first check that failed.
 * @throws ConfigError (rejects) for unusable `headers` or options; never for anything a sender can send.
 */
export async function verifySignature(
  message: SignedMessage,
  jwk: Jwk,
  options: VerifySignatureOptions = {},
): Promise<VerifiedSignature | Refusal> {
  const { engine = await createEngine(), hashes = await loadHashes(), now = Date.now } = options;
  const protocol = protocolFor(options.protocol);
  const headers = headerFields(message.headers);
  const signed = checkSignatureHeaders(headers, protocol, now());
  if (signed.kind === 'refused') return signed;
  const { components, parameters, signature, digest } = signed;
  const { keyPurposes } = editionFor(options.edition);
  const policy = { protocol, purposes: keyPurposes, alg: parameters.alg };
  const key = usableKey(jwk, await engine.importKey(jwk), policy);
  if (typeof key === 'string') return refuse(8, 'webhook_signature_key_purpose_invalid', `The JWK: ${key}.`);
  const { method, url, body } = message;
  // Without a request target of its own the message cannot contradict itself; `Host` still has to fit.
  const delivery = { method, url: undefined, headers, rawBody: body ?? new Uint8Array() };
  const base = baseOf(delivery, url, components, signed.signatureParams);
  if ('kind' in base) return base;
  if (!(await engine.verify(key, base, signature))) {
    return refuse(10, 'webhook_signature_invalid', 'The signature does not verify.');
  }
  if (body && !digestMatches(digest, body, hashes)) {
    return refuse(11, 'webhook_signature_digest_mismatch', 'Content-Digest does not match the body.');
  }
  const { keyid, nonce, alg, created, expires } = parameters;
  return { kind: 'verified', keyid, nonce, alg, created, expires, components };
}
