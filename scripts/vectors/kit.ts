/*
 * What the vectors are made with. Nothing here comes from `src/`: vectors that the judged code computed would agree with
 * it whatever it does. Signature bases are put together from their parts, canonical URLs are written by hand.
 */
import { createHash } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';

/** Receiver's clock of every vector, Unix seconds. */
export const NOW = 1_790_000_000;
export const URL_GIVEN = 'https://buyer.example/webhooks/proto';
export const AGENT = 'https://seller.example/mcp';
export const TAG = 'proto/webhook-signing/v1';

export type Json = Readonly<Record<string, unknown>>;

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
export const sha256 = (data: Uint8Array | string): Uint8Array =>
  new Uint8Array(createHash('sha256').update(data).digest());
export const sha512 = (data: Uint8Array | string): Uint8Array =>
  new Uint8Array(createHash('sha512').update(data).digest());

/** How a byte sequence is written. */
export type Alphabet = 'base64url' | 'base64url-padded' | 'base64' | 'base64-unpadded';

export function encode(bytes: Uint8Array, alphabet: Alphabet = 'base64url'): string {
  const buffer = Buffer.from(bytes);
  const standard = buffer.toString('base64');
  const url = buffer.toString('base64url');
  const padding = '='.repeat((4 - (url.length % 4)) % 4);
  const forms: Record<Alphabet, string> = {
    base64url: url,
    'base64url-padded': url + padding,
    base64: standard,
    'base64-unpadded': standard.replace(/=+$/, ''),
  };
  return forms[alphabet];
}

/** 16 bytes that depend on the name alone, unpadded base64url. */
export const nonceOf = (name: string): string => encode(sha256(`nonce ${name}`).subarray(0, 16));

export type Algorithm = 'ed25519' | 'ecdsa-p256-sha256';

export interface TestKey {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly sign: (data: Uint8Array) => Uint8Array;
  /** As a seller publishes it. */
  readonly jwk: Json;
  /** The private part; never used outside these vectors. */
  readonly secret: string;
}

const SIGNERS: Record<Algorithm, (secret: Uint8Array) => Pick<TestKey, 'sign'> & { readonly point: Json }> = {
  ed25519: (secret) => ({
    point: { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', x: encode(ed25519.getPublicKey(secret)) },
    sign: (data) => ed25519.sign(data, secret),
  }),
  // RFC 6979: deterministic, r‖s.
  'ecdsa-p256-sha256': (secret) => {
    const point = p256.getPublicKey(secret, false);
    return {
      point: {
        kty: 'EC',
        crv: 'P-256',
        alg: 'ES256',
        x: encode(point.slice(1, 33)),
        y: encode(point.slice(33)),
      },
      sign: (data) => p256.sign(data, secret, { prehash: true, lowS: false }),
    };
  },
};

/** A key that depends on its `kid` alone. */
export function testKey(alg: Algorithm, purpose: string, kid: string): TestKey {
  const secret = sha256(`proto-webhooks test key ${kid}`);
  const { point, sign } = SIGNERS[alg](secret);
  const jwk = { kid, ...point, use: 'sig', key_ops: ['verify'], proto_use: purpose };
  return { kid, alg, sign, jwk, secret: encode(secret) };
}

export const KEYS = {
  ed25519: testKey('ed25519', 'webhook-signing', 'test-ed25519-webhook'),
  p256: testKey('ecdsa-p256-sha256', 'webhook-signing', 'test-p256-webhook'),
  second: testKey('ed25519', 'webhook-signing', 'test-ed25519-webhook-2'),
  request: testKey('ed25519', 'request-signing', 'test-ed25519-request'),
  requestP256: testKey('ecdsa-p256-sha256', 'request-signing', 'test-p256-request'),
  other: testKey('ed25519', 'governance-signing', 'test-ed25519-governance'),
} as const;

/** `keys.json`. */
export const keySet = (): Json => ({
  keys: Object.values(KEYS).map(({ jwk, secret }) => ({ ...jwk, _private_d_for_test_only: secret })),
});

/** Without the members of those names. */
export function without(json: Json, ...names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(json).filter(([name]) => !names.includes(name)));
}
