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

/** A = aB + T with T of order 2: no flaw of the key (verification.md §3.5). */
const MIXED_KEY = 'ZIyjP93BCeoVF-Wyoc1bHGstPR8HdcUbQDoYO5jEma4';

/** Where libraries that all verify RFC 8032's own examples part: with the cofactor each of these would be true. */
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
 * The native engine with Ed25519 by libsodium, which takes half of OpenSSL's time. P-256 stays OpenSSL's. Not every
 * build of libsodium gives the verdicts of the other engines, so each is asked where they part.
 * @throws Error (rejects) where its verdicts are others, or with what it throws itself.
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
        // As libsodium itself answers: 0 for a good signature, and -1.
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
