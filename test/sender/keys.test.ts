import { describe, expect, test } from 'vitest';
import { createEngine } from '../../src/auth/rfc9421/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { signBytes } from '../../src/for-tests.ts';

describe('generateKey', () => {
  test.each([
    ['ed25519', { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' }],
    ['ecdsa-p256-sha256', { kty: 'EC', crv: 'P-256', alg: 'ES256' }],
  ] as const)('%s has what check 8 asks for, and no private part in public', async (alg, shape) => {
    const { privateJwk, publicJwk } = await generateKey(alg);
    const published = { ...shape, use: 'sig', key_ops: ['verify'], proto_use: 'webhook-signing' };
    expect(publicJwk).toMatchObject(published);
    expect(publicJwk).not.toHaveProperty('d');
    expect(privateJwk).toMatchObject({ ...shape, kid: publicJwk['kid'], d: expect.any(String) as string });
    expect(await (await createEngine()).importKey(publicJwk)).toMatchObject({ alg });
  });

  test('the kid is the RFC 7638 thumbprint, or as given; the purpose likewise', async () => {
    const first = await generateKey('ed25519');
    const second = await generateKey('ed25519');
    expect(first.publicJwk['kid']).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(first.publicJwk['kid']).not.toBe(second.publicJwk['kid']);
    const named = await generateKey('ecdsa-p256-sha256', 'request-signing', { kid: 'k1', protocol: 'x' });
    expect(named.publicJwk).toMatchObject({ kid: 'k1', x_use: 'request-signing' });
    expect(named.privateJwk).toMatchObject({ kid: 'k1', x_use: 'request-signing' });
  });
});

describe('signBytes', () => {
  test('reproduces RFC 8032 §7.1, test 2', async () => {
    const key = {
      kty: 'OKP',
      crv: 'Ed25519',
      d: 'TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs',
      x: 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw',
    };
    const signature = await signBytes(key, new Uint8Array([0x72]));
    expect(Buffer.from(signature).toString('hex')).toBe(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    );
  });

  test('gives r‖s of 64 bytes for P-256', async () => {
    const { privateJwk, publicJwk } = await generateKey('ecdsa-p256-sha256');
    const data = new TextEncoder().encode('base');
    const signature = await signBytes(privateJwk, data);
    expect(signature).toHaveLength(64);
    const engine = await createEngine();
    const key = await engine.importKey(publicJwk);
    if (typeof key === 'string') throw new Error(key);
    expect(await engine.verify(key, data, signature)).toBe(true);
  });
});
