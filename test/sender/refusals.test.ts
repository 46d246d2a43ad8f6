import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { readEvent } from '../../src/events/index.ts';
import {
  generateKey,
  type PayloadInput,
  signDelivery,
  type SignedDelivery,
  signHmac,
} from '../../src/sender/sign.ts';

const url = 'https://buyer.example/hook';
const secret = 'a shared secret of 32 characters';
const { privateJwk: key } = await generateKey('ed25519');

interface Given {
  readonly body: PayloadInput;
  readonly allowMalformed?: boolean;
}

const SIGNERS: readonly (readonly [string, (given: Given) => Promise<SignedDelivery>])[] = [
  ['signDelivery', async (given) => signDelivery({ url, key, ...given })],
  ['signHmac', async (given) => signHmac({ url, secret, ...given })],
];

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe.each(SIGNERS)('%s and a duplicate member', (_name, sign) => {
  const TWICE = [
    ['plain', '{"a":1,"a":2}', '"a"'],
    ['escaped', '{"a":1,"\\u0061":2}', '"a"'],
    ['deep, in an array', '{"x":[[{"a":1},{"b":{"c":1,"d":2,"c":1}}]]}', '"c"'],
    ['in an array alone', '[{"a":1,"a":1}]', '"a"'],
    ['several', '{"a":1,"a":1,"b":1,"b":1,"\\u202e":1,"\\u202e":1}', '"a", "b", "<sanitized:0>"'],
  ] as const;

  test.each(TWICE)('refuses it: %s', async (_what, text, names) => {
    for (const body of [text, encode(text)]) {
      const refused = sign({ body });
      await expect(refused).rejects.toThrow(ConfigError);
      await expect(refused).rejects.toThrow(`body: an object in it has a member twice: ${names}.`);
      await expect(refused).rejects.toThrow(/webhook_body_malformed.*allowMalformed: true/);
    }
  });

  test('signs it on request', async () => {
    for (const [, text] of TWICE) {
      const { body } = await sign({ body: text, allowMalformed: true });
      expect(new TextDecoder().decode(body)).toBe(text);
      expect(readEvent(body).ok).toBe(false);
    }
    await expect(sign({ body: '{"a":1,"a":2}', allowMalformed: false })).rejects.toThrow(ConfigError);
  });

  test.each([
    ['one name in several objects', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}'],
    ['what looks like it in a string', '{"x":"{\\"a\\":1,\\"a\\":2}"}'],
    ['no JSON at all', '{"a":1,"a":2'],
    ['nothing', ''],
    ['no UTF-8', Uint8Array.of(0xff, 0x3a)],
  ])('signs %s', async (_what, body) => {
    const { body: sent } = await sign({ body });
    expect(sent).toEqual(typeof body === 'string' ? encode(body) : body);
  });
});

describe('signHmac and short secrets', () => {
  test.each(['', 'x'.repeat(31), undefined, 42])('refuses %j', (short) => {
    const sign = (): unknown => signHmac({ url, body: {}, secret: short as string, allowMalformed: true });
    expect(sign).toThrow(ConfigError);
    expect(sign).toThrow('secret: must be a string of at least 32 characters.');
  });

  test('takes 32 characters', () => {
    expect(signHmac({ url, body: {}, secret }).headers['x-proto-signature']).toMatch(/^sha256=/);
  });
});
