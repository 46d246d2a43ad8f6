import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** An agent's key: each has its own. */
export interface SellerKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  /** As it is published. */
  readonly publicJwk: object;
}

const newJwk = (): JsonWebKey => generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });

/** Of an agent that is gone with its process. */
export const newKey = (agent: string): SellerKey => keyFrom(newJwk(), agent);

/** Made once, and found again by who comes after. */
export function keyIn(folder: string, agent: string): SellerKey {
  const file = join(folder, `key-of-${agent}.json`);
  if (!existsSync(file)) writeFileSync(file, JSON.stringify(newJwk()));
  return keyFrom(JSON.parse(readFileSync(file, 'utf8')) as JsonWebKey, agent);
}

function keyFrom(jwk: JsonWebKey, agent: string): SellerKey {
  const kid = `key-of-${agent}`;
  const { kty, crv, x } = jwk;
  return {
    kid,
    privateKey: createPrivateKey({ key: jwk, format: 'jwk' }),
    publicJwk: {
      kty,
      crv,
      x,
      kid,
      use: 'sig',
      key_ops: ['verify'],
      alg: 'EdDSA',
      proto_use: 'webhook-signing',
    },
  };
}

const COVERED = '("@method" "@target-uri" "@authority" "content-type" "content-digest")';

/** Headers of one attempt (RFC 9421, the profile's five components). */
export function signedHeaders(url: string, body: Buffer, key: SellerKey): Record<string, string> {
  const created = Math.floor(Date.now() / 1000);
  const nonce = randomBytes(16).toString('base64url');
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64url')}:`;
  const params = `${COVERED};created=${created};expires=${created + 300};nonce="${nonce}";keyid="${key.kid}";alg="ed25519";tag="proto/webhook-signing/v1"`;
  const base = [
    '"@method": POST',
    `"@target-uri": ${url}`,
    `"@authority": ${new URL(url).host}`,
    '"content-type": application/json',
    `"content-digest": ${digest}`,
    `"@signature-params": ${params}`,
  ].join('\n');
  const signature = sign(null, Buffer.from(base), key.privateKey).toString('base64url');
  return {
    'Content-Type': 'application/json',
    'Content-Digest': digest,
    'Signature-Input': `sig1=${params}`,
    Signature: `sig1=:${signature}:`,
  };
}
