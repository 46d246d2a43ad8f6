// The engine in JavaScript, for runtimes without node:crypto and without Ed25519 in WebCrypto
// (verification.md §3.7).
// Loaded on demand by `index.ts`, because it is slow and large.

import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { bytesToNumberLE } from '@noble/curves/utils.js';
import { sha512 } from '@noble/hashes/sha2.js';
import type { CryptoEngine } from './engine.ts';
import { equalBytes } from './equal.ts';
import { withPrechecks, type Verifier } from './public-key.ts';

/**
 * Verifies by RFC 8032 §5.1.7 with the cofactorless equation: the encoding of S·B − k·A equals R's bytes.
 * `ed25519.verify` multiplies by the cofactor. It would accept an R with a component of small order, which OpenSSL and
 * BoringSSL refuse.
 */
function ed25519Verifier(encoded: Uint8Array): Verifier {
  const { Point } = ed25519;
  const minusA = Point.fromBytes(encoded, false).negate();
  return (data, signature) => {
    const r = signature.subarray(0, 32);
    const s = bytesToNumberLE(signature.subarray(32));
    const hash = sha512.create().update(r).update(encoded).update(data).digest();
    const k = Point.Fn.create(bytesToNumberLE(hash));
    return equalBytes(Point.BASE.multiplyUnsafe(s).add(minusA.multiplyUnsafe(k)).toBytes(), r);
  };
}

/** An engine in JavaScript, for runtimes without another one: slow, and loaded only if it is needed. */
export function nobleEngine(): CryptoEngine {
  return withPrechecks('noble', {
    ed25519: ({ point }) => ed25519Verifier(point),
    'ecdsa-p256-sha256':
      ({ point }) =>
      (data, signature) =>
        p256.verify(signature, data, point, { lowS: false }),
  });
}
