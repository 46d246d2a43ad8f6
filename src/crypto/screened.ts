import { ed25519SignatureFits } from './ed25519-precheck.ts';
import type { CryptoEngine, Jwk, SignatureAlgorithm, VerifyKey } from './engine.ts';
import { p256SignatureFits } from './p256-precheck.ts';
import { type PublicKey, readPublicKey } from './public-key.ts';

/** An imported key, ready to verify: only ever called with a signature that passed its algorithm's pre-check. */
export type Verifier = (data: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/** What an engine brings: for each algorithm, an importer of keys that passed the common checks. */
export type Primitives = Record<SignatureAlgorithm, (key: PublicKey) => Verifier | Promise<Verifier>>;

const SIGNATURE_FITS: Record<SignatureAlgorithm, (signature: Uint8Array) => boolean> = {
  ed25519: ed25519SignatureFits,
  'ecdsa-p256-sha256': p256SignatureFits,
};

async function importKey(primitives: Primitives, jwk: Jwk): Promise<VerifyKey | string> {
  const key = readPublicKey(jwk);
  if (typeof key === 'string') return key;
  try {
    return { alg: key.alg, handle: await primitives[key.alg](key) };
  } catch {
    return 'the crypto engine does not take the key';
  }
}

function verify(key: VerifyKey, data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean> {
  if (!SIGNATURE_FITS[key.alg](signature)) return false;
  try {
    const verdict = (key.handle as Verifier)(data, signature);
    return typeof verdict === 'boolean' ? verdict : verdict.catch(() => false);
  } catch {
    return false;
  }
}

/**
 * Puts the checks that all engines share before one of them, so that no engine can be reached around them and what
 * is left to it is what all decide alike: the cofactorless equation, and plain ECDSA (verification.md §3.4, §3.7).
 */
export function screenedEngine(name: CryptoEngine['name'], primitives: Primitives): CryptoEngine {
  return { name, importKey: (jwk) => importKey(primitives, jwk), verify };
}
