import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { bearerDelivery, generateKey, signDelivery, signHmac } from '../../src/sender/sign.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';

type Loose = (...given: readonly unknown[]) => unknown;

const url = 'https://buyer.example/hook';
const secret = 's'.repeat(32);

async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}

async function expectUnknown(call: () => unknown, message: RegExp): Promise<void> {
  const error = await thrownBy(call);
  expect(error).toBeInstanceOf(ConfigError);
  expect(String(error)).toMatch(message);
}

describe('an unknown argument is refused, with the valid ones', () => {
  it.each<[string, Loose, readonly unknown[], RegExp]>([
    [
      'generateKey: kdi',
      generateKey as Loose,
      ['ed25519', 'p', { kdi: 'a' }],
      /kdi is not known. Known: kid, protocol/,
    ],
    [
      'generateKey: options for the purpose',
      generateKey as Loose,
      ['ed25519', { kid: 'a' }],
      /generateKey: purpose: .*not a non-empty string/,
    ],
    [
      'generateKey: an algorithm',
      generateKey as Loose,
      ['rsa'],
      /generateKey: alg: "rsa" is not one of ed25519, ecdsa-p256/,
    ],
    [
      'signDelivery',
      signDelivery as Loose,
      [{ url, body: {}, key: {}, lifeTime: 1 }],
      /lifeTime is not known.*lifetimeMs/,
    ],
    [
      'signDelivery: params',
      signDelivery as Loose,
      [{ url, body: {}, key: {}, params: { keyId: 'a' } }],
      /params: keyId is not known.*keyid/,
    ],
    [
      'signHmac',
      signHmac as Loose,
      [{ url, body: {}, secret, key: 'x' }],
      /signHmac: key is not known.*secret/,
    ],
    [
      'bearerDelivery',
      bearerDelivery as Loose,
      [{ url, body: {}, token: secret, now: 1 }],
      /bearerDelivery: now is not known/,
    ],
  ])('%s', (_, call, given, message) => expectUnknown(() => call(...given), message));

  it.each<[string, (seller: FakeSeller) => unknown, RegExp]>([
    ['sign', (seller) => seller.sign({}, { uri: url } as object), /sign: uri is not known.*url/],
    [
      'sign: sign',
      (seller) => seller.sign({}, { url, sign: { keyid: 'a' } as object }),
      /signDelivery: keyid is not/,
    ],
    [
      'send',
      async (seller) => seller.send(await seller.sign({}, { url }), { too: url } as object),
      /send: too is not/,
    ],
    [
      'deliver: retry',
      (seller) => seller.deliver({}, { url, retry: { tries: 1 } as object }),
      /retry: tries is not/,
    ],
    ['challenge', (seller) => seller.challenge({}, { uri: url } as object), /challenge: uri is not known/],
    [
      'rotate',
      (seller) => seller.rotate('ed25519', { overlaps: true } as object),
      /rotate: overlaps is not known/,
    ],
    ['revoke', (seller) => seller.revoke([], { life: 1 } as object), /revoke: life is not known.*lifeMs/],
  ])('a fake seller: %s', async (_, call, message) => {
    await using seller = await createFakeSeller();
    await expectUnknown(() => call(seller), message);
  });
});
