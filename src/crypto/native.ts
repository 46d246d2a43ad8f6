// The crypto engine on node:crypto, that is OpenSSL or BoringSSL (verification.md §3.4 to §3.7).
// Called by `index.ts`, and by `sodium.ts`, which replaces its Ed25519.

import type { CryptoEngine } from './engine.ts';
import type { NodeCrypto } from './node-crypto.ts';
import type { NodeVerify } from './pool.ts';
import { type Primitives, withPrechecks } from './public-key.ts';

/**
 * Writes 32 bytes of a positive integer at `to` as a DER INTEGER. Leading zero bytes are removed; one is added if the
 * sign bit is set. Returns the index behind the INTEGER.
 */
function writeInteger(source: Uint8Array, from: number, target: Uint8Array, to: number): number {
  let first = from;
  while (first < from + 31 && source[first] === 0) first += 1;
  const pad = (source[first] ?? 0) >= 0x80 ? 1 : 0;
  const digits = from + 32 - first;
  target[to] = 0x02;
  target[to + 1] = pad + digits;
  // The target is a new array, so the padding byte is already 0.
  target.set(source.subarray(first, first + digits), to + 2 + pad);
  return to + 2 + pad + digits;
}

/**
 * Converts r‖s to the SEQUENCE of two INTEGERs that OpenSSL reads (RFC 3279 §2.2.3). The option `ieee-p1363` of
 * node:crypto would do the same, but costs a third of a verification.
 * @param signature 64 bytes.
 */
export function derSignature(signature: Uint8Array): Uint8Array {
  const der = new Uint8Array(72);
  const end = writeInteger(signature, 32, der, writeInteger(signature, 0, der, 2));
  der[0] = 0x30;
  der[1] = end - 2;
  return der.subarray(0, end);
}

/** The parts of a native engine that can be replaced. */
export interface NativeParts {
  /** Verifies a signature. Default: `crypto.verify`, synchronously. */
  readonly verify?: NodeVerify | undefined;
  /** Imports Ed25519 keys and verifies with them. Default: OpenSSL. */
  readonly ed25519?: Primitives['ed25519'] | undefined;
}

/**
 * Makes an engine on node:crypto, which parses each key once. The engine is synchronous unless `parts.verify` is not.
 */
export function nativeEngine(crypto: NodeCrypto, parts: NativeParts = {}): CryptoEngine {
  const verify: NodeVerify =
    parts.verify ?? ((algorithm, data, key, signature) => crypto.verify(algorithm, data, key, signature));
  return withPrechecks('native', {
    ed25519:
      parts.ed25519 ??
      (({ jwk }) => {
        const key = crypto.createPublicKey({ key: jwk, format: 'jwk' });
        return (data, signature) => verify(null, data, key, signature);
      }),
    'ecdsa-p256-sha256': ({ jwk }) => {
      const key = crypto.createPublicKey({ key: jwk, format: 'jwk' });
      return (data, signature) => verify('sha256', data, key, derSignature(signature));
    },
  });
}
