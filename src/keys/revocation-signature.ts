import type { Jwk } from '../crypto/engine.ts';
import { readPublicKey } from '../crypto/public-key.ts';
import { LIST_ALGORITHMS, type ListSignature } from './revocation-list.ts';

/** The members of a JWK that `jose` holds a signature to: algorithm, use and operations must allow this one. */
const COMPARED = ['alg', 'use', 'key_ops'] as const;

/**
 * Whether the key signed the list. Any key of the operator with `use` = `sig` may: a list is the operator's word about
 * all its keys, so no one purpose is asked for.
 * @returns what is wrong, for the owner's log, or undefined.
 */
export async function listSignatureFlaw({ kid, jws }: ListSignature, jwk: Jwk): Promise<string | undefined> {
  const quotedKid = JSON.stringify(kid.slice(0, 64));
  if (jwk['use'] !== 'sig') return `the key ${quotedKid} is not for signatures (use is not sig)`;
  // Small-order and non-canonical points, which some engines accept (verification.md §3.8).
  const key = readPublicKey(jwk);
  if (typeof key === 'string') return `the key ${quotedKid} cannot be used: ${key}`;
  const compared = Object.fromEntries(COMPARED.map((name) => [name, jwk[name]]).filter(([, value]) => value));
  // Loaded where a list is signed, and nowhere else: most are not.
  const { flattenedVerify } = await import('jose/jws/flattened/verify');
  try {
    await flattenedVerify({ ...jws }, { ...key.jwk, ...compared }, { algorithms: [...LIST_ALGORITHMS] });
    return undefined;
  } catch {
    return `the signature does not verify under the key ${quotedKid}`;
  }
}
