import { describe, expect, test } from 'vitest';
import { usableKey } from '../../../src/auth/for-tests.ts';
import type { Jwk } from '../../../src/index.ts';
import type { SignatureAlgorithm } from '../../../src/auth/rfc9421/index.ts';
import { editionFor, protocolFor, purposesOf } from '../../../src/for-tests.ts';
import { createSigner, engine } from './support.ts';

const ed = createSigner('ed');
const ec = createSigner('ec', 'ecdsa-p256-sha256');
const purposes = purposesOf(editionFor('3.0'), protocolFor());

async function usable(
  jwk: Jwk,
  alg: SignatureAlgorithm = 'ed25519',
  protocol = 'proto',
  accepted = purposes,
) {
  const policy = { protocol: protocolFor(protocol), purposes: accepted, alg };
  return typeof usableKey(jwk, await engine.importKey(jwk), policy) !== 'string';
}

describe('check 8: key_purpose_invalid (verification.md §2.8)', () => {
  test('Ed25519 and P-256 keys as published pass', async () => {
    expect(await usable(ed.jwk)).toBe(true);
    expect(await usable(ec.jwk, 'ecdsa-p256-sha256')).toBe(true);
  });

  test('more operations beside verify pass', async () => {
    expect(await usable({ ...ed.jwk, key_ops: ['sign', 'verify'] })).toBe(true);
  });

  test.each([
    ['no use', { use: undefined }],
    ['use enc', { use: 'enc' }],
    ['no key_ops', { key_ops: undefined }],
    ['key_ops without verify', { key_ops: ['sign'] }],
    ['key_ops as a string', { key_ops: 'verify' }],
    ['no purpose', { proto_use: undefined }],
    ['another purpose', { proto_use: 'request-signing' }],
    ['a list of purposes', { proto_use: ['webhook-signing'] }],
    ['no alg', { alg: undefined }],
    ['another alg', { alg: 'ES256' }],
    ['another crv', { crv: 'Ed448' }],
    ['kty oct', { kty: 'oct', k: 'AAAA' }],
    ['kty RSA', { kty: 'RSA', n: 'AAAA', e: 'AQAB' }],
    ['kty EC', { kty: 'EC' }],
    ['no x', { x: undefined }],
    ['an identity point', { x: 'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }],
  ])('%s', async (_, changes) => {
    expect(await usable({ ...ed.jwk, ...changes })).toBe(false);
  });

  test('a key does not verify the other algorithm’s signature', async () => {
    expect(await usable(ed.jwk, 'ecdsa-p256-sha256')).toBe(false);
    expect(await usable(ec.jwk, 'ed25519')).toBe(false);
  });

  test.each([
    ['3.0', false],
    ['3.1', true],
    ['3.2', true],
  ] as const)('request-signing under edition %s: %s', async (edition, accepted) => {
    const jwk = { ...ed.jwk, proto_use: 'request-signing' };
    expect(await usable(jwk, 'ed25519', 'proto', editionFor(edition).keyPurposes)).toBe(accepted);
  });

  test('the purpose member contains the configured protocol name', async () => {
    const jwk = { ...ed.jwk, proto_use: undefined, 'ad-x_use': 'webhook-signing' };
    expect(await usable(jwk, 'ed25519', 'ad-x')).toBe(true);
    expect(await usable(jwk)).toBe(false);
  });
});
