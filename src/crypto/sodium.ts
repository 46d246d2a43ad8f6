// The native engine with Ed25519 by libsodium, which takes half of OpenSSL's time (verification.md §3.9).
// Loaded on demand by `receiverEngine`. Builds of libsodium differ, so each is tested before it is used.

import { decodeBase64 } from '../codec/encoding.ts';
import type { CryptoEngine, Sodium } from './engine.ts';
import { nativeEngine } from './native.ts';
import type { NodeCrypto } from './node-crypto.ts';
import type { NodeVerify } from './pool.ts';

interface SodiumResult {
  readonly x: string;
  readonly message: string;
  /** Standard base64. */
  readonly signature: string;
  readonly expected: boolean;
}

/** A key A = aB + T with T of order 2, which is no fault of the key (verification.md §3.5). */
const MIXED_KEY = 'ZIyjP93BCeoVF-Wyoc1bHGstPR8HdcUbQDoYO5jEma4';

/**
 * Signatures about which libraries differ even if they verify RFC 8032's own examples: with the cofactor each
 * would be true.
 */
const VERDICTS: readonly SodiumResult[] = [
  // R = rB + T
  {
    x: 'iXNcwCI-9hXq6BpNXjKk45TSwuD4ijrkv8XnxGc7ZlE',
    message: '"@method": POST',
    signature: 'uBW+Fslv6GkYAOjgwZR/RTu8IrRP/HO6bUB8AGaqHJTuVzm+w6PRfSFiN4SXl9X+oRAyMYWDYkodrM7Z8SWnBQ==',
    expected: false,
  },
  // 2 ∤ k, so that k·T is left over
  {
    x: MIXED_KEY,
    message: 'ground 0',
    signature: 'NepB6TaQF5bn/xcfPmuAusRD3UuwA4xFkr+D/5lV42v4GFSWk6zPh+DfVtibGZtoqqpwu1EhQoEJV18qPTWEDQ==',
    expected: false,
  },
  // 2 | k
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
 * The native engine with Ed25519 by libsodium, which takes half of OpenSSL's time. P-256 stays with OpenSSL.
 * Not every build of libsodium agrees with the other engines, so each is tested on the signatures about which
 * they differ.
 * @throws Error (rejects) if its verdicts differ, or its own error.
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
        // libsodium itself answers 0 for a good signature, and -1.
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
