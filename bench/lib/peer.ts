import { createPublicKey, verify } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import type { Jwk } from '../../dist/index.js';
import { derSignature } from './der.ts';
import { PUBLIC_URL, type Alg } from './deliveries.ts';

type Check = (data: Uint8Array, signature: Uint8Array) => boolean;

/** Peers get the fastest verification that Node has, in place of their own by WebCrypto. */
export function checkFor(jwk: Jwk, alg: Alg): Check {
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  if (alg === 'ed25519') return (data, signature) => verify(null, data, key, signature);
  return (data, signature) => verify('sha256', data, key, derSignature(signature));
}

/** http-message-signatures: whether the signature of a delivery verifies. Its digits have to be standard base64. */
export function peerVerifier(
  jwk: Jwk,
  alg: Alg,
): (headers: Readonly<Record<string, string>>) => Promise<boolean | null> {
  const check = checkFor(jwk, alg);
  const key = {
    id: jwk['kid'] as string,
    algs: [alg],
    verify: async (data: Uint8Array, signature: Uint8Array) => check(data, signature),
  };
  return (headers) =>
    httpbis.verifyMessage({ keyLookup: async () => key }, { method: 'POST', url: PUBLIC_URL, headers });
}
