import { describe, expect, test } from 'vitest';
import {
  canonicalTargetUri,
  parseSignatureInput,
  signatureBase,
  type SignedMessage,
  verifySignature,
} from '../../../src/auth/rfc9421/index.ts';
import { ConfigError } from '../../../src/index.ts';
import { BODY, createSigner, engine, FIVE, hashes, NONCE, NOW, signedHeaders, URL_GIVEN } from './support.ts';

const signer = createSigner('k');
const options = { now: () => NOW * 1000 };

function message(changes: Partial<SignedMessage> = {}): SignedMessage {
  return { method: 'POST', url: URL_GIVEN, headers: signedHeaders(signer), body: BODY, ...changes };
}

describe('verifySignature (./rfc9421)', () => {
  test.each(['ed25519', 'ecdsa-p256-sha256'] as const)('a correct %s message is verified', async (alg) => {
    const mine = createSigner('k', alg);
    expect(await verifySignature(message({ headers: signedHeaders(mine) }), mine.jwk, options)).toEqual({
      kind: 'verified',
      keyid: 'k',
      nonce: NONCE,
      alg,
      created: NOW,
      expires: NOW + 300,
      components: FIVE,
    });
  });

  test('the URL is canonicalised, and Host may be in another form', async () => {
    const headers = { ...signedHeaders(signer), host: 'BUYER.example:443' };
    const url = 'HTTPS://Buyer.Example:443/a/../hooks/%70roto?tenant=7#x';
    expect(await verifySignature(message({ headers, url }), signer.jwk, options)).toMatchObject({
      kind: 'verified',
    });
  });

  test('an engine and hashes can be handed in, and a body left out', async () => {
    const { body: _, ...bodiless } = message();
    const given = { ...options, engine, hashes };
    expect(await verifySignature(bodiless, signer.jwk, given)).toMatchObject({ kind: 'verified' });
  });

  test.each([
    ['header_malformed', 1, { headers: {} }],
    ['components_incomplete', 6, { headers: signedHeaders(signer, { without: ['content-digest'] }) }],
    ['invalid', 10, { url: 'https://buyer.example/other' }],
    ['invalid', 10, { method: 'PUT' }],
    ['digest_mismatch', 11, { body: new Uint8Array() }],
  ])('%s: check %i', async (code, check, changes: Partial<SignedMessage>) => {
    const result = await verifySignature(message(changes), signer.jwk, options);
    expect(result).toMatchObject({ kind: 'refused', check, code: `webhook_signature_${code}` });
  });

  test('a refusal says what is wrong', async () => {
    const url = 'https://buyer.example/other';
    expect(await verifySignature(message({ url }), signer.jwk, options)).toMatchObject({
      detail: 'The signature does not verify.',
    });
  });

  test('check 8: the purpose, by edition and protocol name', async () => {
    const jwk = { ...signer.jwk, proto_use: 'request-signing' };
    expect(await verifySignature(message(), jwk, options)).toMatchObject({
      check: 8,
      code: 'webhook_signature_key_purpose_invalid',
    });
    const later = { ...options, edition: '3.1' as const };
    expect(await verifySignature(message(), jwk, later)).toMatchObject({ kind: 'verified' });
    const dialect = { ...options, protocol: 'ad-x' };
    expect(await verifySignature(message(), jwk, dialect)).toMatchObject({ check: 3 });
  });

  test.each([
    ['no URL', { url: 'nowhere' }],
    ['another Host', { headers: { ...signedHeaders(signer), host: 'evil.example' } }],
    ['two Hosts', { headers: { ...signedHeaders(signer), host: ['buyer.example', 'buyer.example'] } }],
  ])('%s: target_uri_malformed', async (_, changes: Partial<SignedMessage>) => {
    const result = await verifySignature(message(changes), signer.jwk, options);
    expect(result).toMatchObject({ kind: 'refused', check: 10, code: 'webhook_target_uri_malformed' });
  });

  test('a mistake of the caller is a ConfigError', async () => {
    const headers = 'sig1' as unknown as Headers;
    await expect(verifySignature(message({ headers }), signer.jwk, options)).rejects.toThrow(ConfigError);
    const protocol = 'No Name';
    await expect(verifySignature(message(), signer.jwk, { protocol })).rejects.toThrow(ConfigError);
  });
});

test('a signature made with the public parts is verified by the public whole', async () => {
  const headers = new Map([
    ['content-type', ['application/json']],
    ['content-digest', [`sha-256=:${Buffer.from(hashes.sha256(BODY)).toString('base64url')}:`]],
  ]);
  const params = (signedHeaders(signer)['signature-input'] ?? '').slice('sig1='.length);
  const input = parseSignatureInput(`sig1=${params}`);
  if (input.kind === 'refused') throw new Error(input.detail);
  const facts = { method: 'POST', target: canonicalTargetUri(URL_GIVEN), headers };
  const base = signatureBase(input.components, facts, input.raw) ?? '';
  const signature = Buffer.from(signer.sign(new TextEncoder().encode(base))).toString('base64url');
  const all = new Map([
    ...headers,
    ['signature-input', [`sig1=${params}`]],
    ['signature', [`sig1=:${signature}:`]],
  ]);
  expect(await verifySignature(message({ headers: all }), signer.jwk, options)).toMatchObject({
    kind: 'verified',
  });
});
