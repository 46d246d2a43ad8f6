import type { CryptoEngine } from './engine.ts';
import { withPrechecks } from './public-key.ts';

type Subtle = typeof globalThis.crypto.subtle;

/** SubtleCrypto refuses bytes on shared memory, which the other engines take: a copy never is. */
function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** The Web Cryptography API: Ed25519 as in the Secure Curves draft, ECDSA with r‖s as WebCrypto has it anyway. */
export function webcryptoEngine(subtle: Subtle): CryptoEngine {
  return withPrechecks('webcrypto', {
    ed25519: async ({ point }) => {
      const key = await subtle.importKey('raw', copy(point), { name: 'Ed25519' }, false, ['verify']);
      return (data, signature) => subtle.verify({ name: 'Ed25519' }, key, copy(signature), copy(data));
    },
    'ecdsa-p256-sha256': async ({ point }) => {
      const key = await subtle.importKey('raw', copy(point), { name: 'ECDSA', namedCurve: 'P-256' }, false, [
        'verify',
      ]);
      const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
      return (data, signature) => subtle.verify(algorithm, key, copy(signature), copy(data));
    },
  });
}
