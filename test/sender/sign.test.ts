import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSignatureInput, verifySignature } from '../../src/auth/rfc9421/index.ts';
import { ConfigError } from '../../src/index.ts';
import {
  generateKey,
  type Jwk,
  PROFILE_COMPONENTS,
  type SignatureAlgorithm,
  signDelivery,
  type SignDeliveryOptions,
  type SignedDelivery,
} from '../../src/sender/sign.ts';

const NOW = 1_760_000_000;
const now = (): number => NOW * 1000 + 999;
const URL = 'https://buyer.example/webhooks/proto?x=1';
const ENVELOPE = {
  idempotency_key: 'c0ffee00-0000-4000-8000-000000000001',
  task_id: 't',
  status: 'completed',
};

const ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256'] as const;
const PAIRS = {
  ed25519: await generateKey('ed25519'),
  'ecdsa-p256-sha256': await generateKey('ecdsa-p256-sha256'),
};
const ed25519 = PAIRS.ed25519;

const sign = (options: Partial<SignDeliveryOptions> = {}): Promise<SignedDelivery> =>
  signDelivery({ url: URL, body: ENVELOPE, key: ed25519.privateJwk, now, ...options });

const verdict = async (
  delivery: SignedDelivery,
  jwk: Jwk,
  options: { protocol?: string; url?: string } = {},
) => {
  const { url = URL, ...rest } = options;
  const result = await verifySignature({ ...delivery, url }, jwk, { now, ...rest });
  return result.kind === 'verified' ? 'verified' : result.code;
};

describe.each(ALGORITHMS)('%s', (alg: SignatureAlgorithm) => {
  const { privateJwk, publicJwk } = PAIRS[alg];

  test('a delivery has the profile’s headers and parameters in its order', async () => {
    const { method, url, headers, body } = await sign({ key: privateJwk });
    expect([method, url, new TextDecoder().decode(body)]).toEqual(['POST', URL, JSON.stringify(ENVELOPE)]);
    expect(Object.keys(headers)).toEqual(['Content-Type', 'Content-Digest', 'Signature-Input', 'Signature']);
    expect(headers['Content-Type']).toBe('application/json');
    expect(headers['Content-Digest']).toMatch(/^sha-256=:[A-Za-z0-9_-]{43}:$/);
    expect(headers['Signature']).toMatch(/^sig1=:[A-Za-z0-9_-]{86}:$/);
    expect(headers['Signature-Input']).toMatch(
      new RegExp(
        '^sig1=\\("@method" "@target-uri" "@authority" "content-type" "content-digest"\\)' +
          `;created=${NOW};expires=${NOW + 300};nonce="[A-Za-z0-9_-]{22}";keyid="${String(publicJwk['kid'])}"` +
          `;alg="${alg}";tag="proto/webhook-signing/v1"$`,
      ),
    );
  });

  test.each([
    ['base64url', false],
    ['base64url', true],
    ['base64', false],
    ['base64', true],
  ] as const)('verifies in %s, padded: %s', async (alphabet, padded) => {
    const delivery = await sign({ key: privateJwk, alphabet, padded });
    expect(delivery.headers['Content-Digest']?.endsWith('=:')).toBe(padded);
    expect(await verdict(delivery, publicJwk)).toBe('verified');
  });

  test('another key, another URL, another body do not verify', async () => {
    const delivery = await sign({ key: privateJwk });
    const other = await generateKey(alg);
    expect(await verdict(delivery, other.publicJwk)).toBe('webhook_signature_invalid');
    expect(await verdict(delivery, publicJwk, { url: `${URL}&y` })).toBe('webhook_signature_invalid');
    const body = new TextEncoder().encode('{}');
    expect(await verdict({ ...delivery, body }, publicJwk)).toBe('webhook_signature_digest_mismatch');
  });

  test('any body and any path verify', async () => {
    const urls = fc.webUrl({ validSchemes: ['https'], withQueryParameters: true });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array(), urls, async (body, url) => {
        expect(await verdict(await sign({ key: privateJwk, body, url }), publicJwk, { url })).toBe(
          'verified',
        );
      }),
      { numRuns: 25 },
    );
  });
});

describe('options', () => {
  test('text and bytes are sent unchanged, an object without white space', async () => {
    const sent = async (body: SignDeliveryOptions['body']): Promise<string> =>
      new TextDecoder().decode((await sign({ body })).body);
    expect(await sent('{ "a": 1 }')).toBe('{ "a": 1 }');
    expect(await sent(new Uint8Array([0x7b, 0x7d]))).toBe('{}');
    expect(await sent({ a: [1, 2] })).toBe('{"a":[1,2]}');
  });

  test('the bytes that were signed are a copy', async () => {
    const bytes = new TextEncoder().encode('{}');
    const delivery = await sign({ body: bytes });
    bytes[0] = 0;
    expect(await verdict(delivery, ed25519.publicJwk)).toBe('verified');
  });

  test('each delivery has its own nonce, unless one is given', async () => {
    const nonceOf = async (options?: Partial<SignDeliveryOptions>): Promise<unknown> =>
      /nonce="([^"]*)"/.exec((await sign(options)).headers['Signature-Input'] ?? '')?.[1];
    expect(await nonceOf()).not.toBe(await nonceOf());
    expect(await nonceOf({ nonce: 'AAAAAAAAAAAAAAAAAAAAAA' })).toBe('AAAAAAAAAAAAAAAAAAAAAA');
  });

  test('the protocol’s name is in the tag and the purpose', async () => {
    const { privateJwk, publicJwk } = await generateKey('ed25519', 'webhook-signing', { protocol: 'other' });
    expect(publicJwk['other_use']).toBe('webhook-signing');
    const delivery = await sign({ key: privateJwk, protocol: 'other' });
    expect(await verdict(delivery, publicJwk, { protocol: 'other' })).toBe('verified');
    expect(await verdict(delivery, publicJwk)).toBe('webhook_signature_tag_invalid');
  });

  test('more components can be covered, and are then protected', async () => {
    const components = [...PROFILE_COMPONENTS, 'x-trace'];
    const delivery = await sign({ components, headers: { 'X-Trace': 'a' } });
    expect(await verdict(delivery, ed25519.publicJwk)).toBe('verified');
    const changed = { ...delivery, headers: { ...delivery.headers, 'X-Trace': 'b' } };
    expect(await verdict(changed, ed25519.publicJwk)).toBe('webhook_signature_invalid');
  });

  test('headers replace by name in any case, but never the signature', async () => {
    const { headers } = await sign({
      headers: { 'content-type': 'application/json; charset=utf-8', signature: 'x', 'X-More': 'y' },
    });
    expect(Object.keys(headers)).toEqual([
      'Content-Digest',
      'content-type',
      'X-More',
      'Signature-Input',
      'Signature',
    ]);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('a parameter’s string is escaped, and verifies', async () => {
    const keyid = 'a"b\\c';
    const delivery = await sign({ params: { keyid } });
    expect(delivery.headers['Signature-Input']).toContain('keyid="a\\"b\\\\c"');
    const parsed = parseSignatureInput(delivery.headers['Signature-Input'] ?? '');
    expect(parsed).toMatchObject({ parameters: { keyid } });
  });

  test.each([
    ['webhook_signature_tag_invalid', { params: { tag: 'proto/request-signing/v1' } }],
    ['webhook_signature_alg_not_allowed', { params: { alg: 'rsa-v1_5-sha256' } }],
    ['webhook_signature_params_incomplete', { params: { nonce: undefined } }],
    ['webhook_signature_header_malformed', { nonce: 'too-short' }],
    ['webhook_signature_window_invalid', { lifetimeMs: 301_000 }],
    ['webhook_signature_window_invalid', { params: { created: NOW + 61 } }],
    ['webhook_signature_window_invalid', { now: () => (NOW - 361) * 1000 }],
    ['webhook_signature_components_incomplete', { components: PROFILE_COMPONENTS.slice(1) }],
    ['webhook_signature_digest_mismatch', { headers: { 'content-digest': 'sha-512=:AAAA:' } }],
  ] as const)('makes a delivery that is %s on request', async (code, options) => {
    expect(await verdict(await sign(options), ed25519.publicJwk)).toBe(code);
  });

  test('are not modified', async () => {
    const options = Object.freeze({
      url: URL,
      body: Object.freeze({ ...ENVELOPE }),
      key: Object.freeze({ ...ed25519.privateJwk }),
      params: Object.freeze({}),
      headers: Object.freeze({}),
    });
    await expect(signDelivery(options)).resolves.toMatchObject({ url: URL });
  });
});

describe('mistakes', () => {
  const { kid: _, ...nameless } = ed25519.privateJwk;
  test.each([
    ['a key without kid', { key: nameless }, /no kid/],
    ['a public key', { key: ed25519.publicJwk }, /no usable private part/],
    ['another kind of key', { key: { kty: 'oct', k: 'AA', kid: 'a' } }, /Ed25519/],
    ['a component that is not there', { components: [...PROFILE_COMPONENTS, 'x-none'] }, /x-none/],
    ['a body that is not JSON', { body: (() => undefined) as unknown as object }, /body/],
    ['a protocol name', { protocol: 'Proto' }, /protocol/],
  ])('%s is a ConfigError with the reason', async (_, options, message) => {
    const failure = await sign(options).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigError);
    expect((failure as ConfigError).message).toMatch(message);
  });

  test('a URL without a canonical form is refused', async () => {
    await expect(sign({ url: 'ftp://buyer.example/' })).rejects.toMatchObject({
      code: 'webhook_target_uri_malformed',
    });
  });
});
