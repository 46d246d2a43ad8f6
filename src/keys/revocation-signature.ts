import { decodeBase64 } from '../codec/base64.ts';
import type { Jwk, SignatureAlgorithm } from '../crypto/engine.ts';
import type { ListSignature } from './revocation-list.ts';

/** RFC 8037 §3.1, RFC 7518 §3.4: what signs under which `alg`. */
const ALGORITHMS: Readonly<Record<string, SignatureAlgorithm>> = {
  EdDSA: 'ed25519',
  ES256: 'ecdsa-p256-sha256',
};

/**
 * Whether the key signed the list. Any key of the operator with `use` = `sig` may: a list is the operator's word about
 * all its keys, so no one purpose is asked for. The header was read already, strictly: nothing here reads it again.
 * @returns what is wrong, for the owner's log, or undefined.
 */
export async function listSignatureFlaw(
  { kid, alg, jws }: ListSignature,
  jwk: Jwk,
): Promise<string | undefined> {
  const quotedKid = JSON.stringify(kid.slice(0, 64));
  if (jwk['use'] !== 'sig') return `the key ${quotedKid} is not for signatures (use is not sig)`;
  // Loaded where a list is signed, and nowhere else: most are not.
  const { createEngine } = await import('../crypto/index.ts');
  const engine = await createEngine();
  const key = await engine.importKey(jwk);
  if (typeof key === 'string') return `the key ${quotedKid} cannot be used: ${key}`;
  const signature = decodeBase64(jws.signature);
  // RFC 7515 §5.2 step 8: over the header and the payload as they were sent.
  const signed = new TextEncoder().encode(`${jws.protected}.${jws.payload}`);
  const verified =
    ALGORITHMS[alg] === key.alg &&
    permits(jwk, alg) &&
    signature !== undefined &&
    (await engine.verify(key, signed, signature));
  return verified ? undefined : `the signature does not verify under the key ${quotedKid}`;
}

/** RFC 7517 §4.3 and §4.4: a key that says what it is for is for nothing else. */
function permits({ alg: own, key_ops: operations }: Jwk, alg: string): boolean {
  if (own !== undefined && own !== null && own !== alg) return false;
  if (operations === undefined || operations === null) return true;
  return Array.isArray(operations) && operations.includes('verify');
}
