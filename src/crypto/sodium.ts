// The native engine with Ed25519 by libsodium, which takes half of OpenSSL's time (verification.md §3.9).
// Loaded on demand by `receiverEngine`. Builds of libsodium differ, so the installed build is tested before it is
// used.

import { decodeBase64 } from '../codec/encoding.ts';
import type { CryptoEngine, Sodium } from './engine.ts';
import { nativeEngine } from './native.ts';
import type { NodeCrypto } from './node-crypto.ts';
import type { NodeVerify } from './pool.ts';

interface SodiumResult {
  readonly x: string;
  readonly message: string;
  /** The signature in standard base64. */
  readonly signature: string;
  readonly expected: boolean;
}

/** A public key A = aB + T with a component T of order 2. Such a key is valid (verification.md §3.5). */
const MIXED_KEY = 'ZIyjP93BCeoVF-Wyoc1bHGstPR8HdcUbQDoYO5jEma4';

/**
 * Test vectors that show if a build of libsodium agrees with the other engines. Libraries disagree on them, even
 * libraries that verify RFC 8032's own examples. A library that multiplies by the cofactor accepts all three.
 */
const VERDICTS: readonly SodiumResult[] = [
  // The signature's point R has a component T of order 2, so the cofactorless equation fails.
  {
    x: 'iXNcwCI-9hXq6BpNXjKk45TSwuD4ijrkv8XnxGc7ZlE',
    message: '"@method": POST',
    signature: 'uBW+Fslv6GkYAOjgwZR/RTu8IrRP/HO6bUB8AGaqHJTuVzm+w6PRfSFiN4SXl9X+oRAyMYWDYkodrM7Z8SWnBQ==',
    expected: false,
  },
  // The hash k is odd, so k times the key's component T is not zero, and the equation fails.
  {
    x: MIXED_KEY,
    message: 'ground 0',
    signature: 'NepB6TaQF5bn/xcfPmuAusRD3UuwA4xFkr+D/5lV42v4GFSWk6zPh+DfVtibGZtoqqpwu1EhQoEJV18qPTWEDQ==',
    expected: false,
  },
  // The hash k is even, so k times the key's component T (of order 2) is zero, and the equation holds.
  {
    x: MIXED_KEY,
    message: 'ground 1',
    signature: 'NepB6TaQF5bn/xcfPmuAusRD3UuwA4xFkr+D/5lV42uMi4cZxCBvnFktp/dXIICF9/x/I2GeDPwiHkPI6MUvBw==',
    expected: true,
  },
];

async function agrees(
  engine: CryptoEngine,
  { x, message, signature, expected }: SodiumResult,
): Promise<boolean> {
  const key = await engine.importKey({ kty: 'OKP', crv: 'Ed25519', x });
  if (typeof key === 'string') return false;
  const bytes = decodeBase64(signature) ?? new Uint8Array();
  return (await engine.verify(key, new TextEncoder().encode(message), bytes)) === expected;
}

/**
 * Makes the native engine with Ed25519 by libsodium, which takes half of OpenSSL's time. P-256 stays with OpenSSL.
 * Some builds of libsodium disagree with the other engines, so the build is tested with signatures on which libraries
 * disagree.
 * @throws Error (rejects) if the build's verdicts differ; also the error of the build itself.
 */
export async function sodiumEngine(
  crypto: NodeCrypto,
  sodium: Sodium,
  verify: NodeVerify | undefined,
): Promise<CryptoEngine> {
  const engine = nativeEngine(crypto, {
    verify,
    ed25519:
      ({ point }) =>
      (data, signature) => {
        const verdict: unknown = sodium.crypto_sign_verify_detached(signature, data, point);
        if (typeof verdict === 'boolean') return verdict;
        // The C function of libsodium returns 0 for a good signature and -1 otherwise, so a number must not be taken
        // for a verdict.
        throw new Error(`libsodium answered ${typeof verdict} and no verdict`);
      },
  });
  for (const verdict of VERDICTS) {
    if (!(await agrees(engine, verdict))) {
      throw new Error('it does not give the verdicts on Ed25519 signatures that the other engines give');
    }
  }
  return engine;
}
