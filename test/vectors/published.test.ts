import { describe, expect, test } from 'vitest';
import { createEngine, type CryptoEngine, type Jwk, signatureBase } from '../../src/auth/rfc9421/index.ts';
import { headerFields } from '../../src/for-tests.ts';
import { B26, TEST_KEY_ED25519 } from '../auth/rfc9421/published.ts';
import { bigEndian, ec, utf8 } from '../crypto/make.ts';

/* Vectors that others published; those of RFC 8032, RFC 4231 and RFC 8785 are in test/crypto and test/codec. */

const engines = await Promise.all(
  (['native', 'webcrypto', 'noble'] as const).map((name) => createEngine(name)),
);

async function verifies(
  engine: CryptoEngine,
  jwk: Jwk,
  message: string,
  signature: Uint8Array,
): Promise<boolean> {
  const key = await engine.importKey(jwk);
  if (typeof key === 'string') throw new Error(key);
  return engine.verify(key, utf8(message), signature);
}

const fromBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));

/** RFC 9421, appendix B.1.3. */
const TEST_KEY_ECC_P256: Jwk = {
  kty: 'EC',
  crv: 'P-256',
  x: 'qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA',
  y: 'Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0',
};

/** RFC 9421, appendix B.2.4, of a response: base and signature alone. */
const B24 = {
  base: [
    '"@status": 200',
    '"content-type": application/json',
    '"content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:',
    '"content-length": 23',
    '"@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256"',
  ].join('\n'),
  signature: 'wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==',
};

/** RFC 6979, appendix A.2.5, SHA-256. */
const A25 = {
  jwk: ec(
    0x60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6n,
    0x7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299n,
  ),
  sample: [
    0xefd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716n,
    0xf7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8n,
  ],
  test: [
    0xf1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367n,
    0x019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083n,
  ],
} as const;

describe('RFC 9421, appendix B', () => {
  test('B.2.6: the base', () => {
    const headers = headerFields({
      Host: 'example.com',
      Date: 'Tue, 20 Apr 2021 02:07:55 GMT',
      'Content-Type': 'application/json',
      'Content-Length': '18',
    });
    const target = { targetUri: 'https://example.com/foo?param=Value&Pet=dog', authority: 'example.com' };
    expect(signatureBase(B26.components, { method: 'POST', target, headers }, B26.params)).toBe(B26.base);
  });

  test.each(engines)('B.2.6 and B.2.4 verify, and nothing else does: $name', async (engine) => {
    const ed25519 = fromBase64(B26.signature);
    const p256 = fromBase64(B24.signature);
    expect(await verifies(engine, TEST_KEY_ED25519, B26.base, ed25519)).toBe(true);
    expect(await verifies(engine, TEST_KEY_ED25519, `${B26.base} `, ed25519)).toBe(false);
    expect(await verifies(engine, TEST_KEY_ECC_P256, B24.base, p256)).toBe(true);
    expect(await verifies(engine, TEST_KEY_ECC_P256, `${B24.base} `, p256)).toBe(false);
  });
});

describe('RFC 6979, appendix A.2.5', () => {
  test.each(engines)('SHA-256: $name', async (engine) => {
    for (const message of ['sample', 'test'] as const) {
      const signature = Uint8Array.from(A25[message].flatMap((value) => [...bigEndian(value)]));
      expect(await verifies(engine, A25.jwk, message, signature), message).toBe(true);
      expect(await verifies(engine, A25.jwk, `${message}.`, signature), message).toBe(false);
    }
  });
});
