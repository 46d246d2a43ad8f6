// Check 8: decides if a JWK may verify webhooks of this protocol name, edition and algorithm (verification.md §2.8).
// Called for each candidate key of a delivery, and for each pinned key when it is imported.

import { algorithmOfKey, ALGORITHMS, type SignatureAlgorithm } from '../../crypto/algorithms.ts';
import type { Jwk, VerifyKey } from '../../crypto/engine.ts';
import { type Edition, purposesOf } from '../../shared/editions.ts';
import type { Protocol, Protocols } from '../../shared/wire-names.ts';

/** The values with which check 8 (the key's purpose and algorithm) compares a key. */
export interface KeyPolicy {
  readonly protocol: Protocol;
  /** Accepted values of `<protocol>_use`, from the sender's edition. */
  readonly purposes: readonly string[];
  /** The algorithm that the signature names (`alg`). */
  readonly alg: SignatureAlgorithm;
}

/**
 * Performs check 8: decides if the JWK may verify this signature.
 * @param verifyKey the imported key, or the reason why it could not be imported.
 * @returns the imported key, or the reason why it may not verify. Never throws: a JWK may contain anything.
 */
export function usableKey(jwk: Jwk, verifyKey: VerifyKey | string, policy: KeyPolicy): VerifyKey | string {
  if (typeof verifyKey === 'string') return verifyKey;
  const { protocol, purposes, alg } = policy;
  const operations = jwk['key_ops'];
  const purpose = jwk[protocol.purposeMember];
  if (jwk['use'] !== 'sig') return 'use is not sig';
  if (!Array.isArray(operations) || !operations.includes('verify')) return 'key_ops does not include verify';
  if (typeof purpose !== 'string' || !purposes.includes(purpose)) {
    return `${protocol.purposeMember} is not ${purposes.join(' or ')}`;
  }
  const { algs } = ALGORITHMS[alg];
  const agree =
    algorithmOfKey(jwk) === alg && algs.some((name) => name === jwk['alg']) && verifyKey.alg === alg;
  return agree ? verifyKey : `kty, crv and alg do not agree with ${alg}`;
}

/**
 * Returns the reason why a key may never verify a delivery of an edition; undefined if it may. The key is checked for
 * each accepted protocol name whose purpose member it has, or else for the first name.
 */
export function unfitReason(
  jwk: Jwk,
  verifyKey: VerifyKey,
  protocols: Protocols,
  edition: Pick<Edition, 'keyPurposes'>,
): string | undefined {
  const { alg } = verifyKey;
  const named = protocols.filter(({ purposeMember }) => Object.hasOwn(jwk, purposeMember));
  const reasons = (named.length > 0 ? named : protocols.slice(0, 1)).map((protocol) =>
    usableKey(jwk, verifyKey, { protocol, purposes: purposesOf(edition, protocol), alg }),
  );
  const [reason] = reasons;
  return typeof reason === 'string' && reasons.every((one) => typeof one === 'string') ? reason : undefined;
}
