import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, it } from 'vitest';
import type { CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { nodeCrypto, type Sodium, sodiumEngine } from '../../src/crypto/for-tests.ts';
import { ED25519_CASES } from './ed25519-cases.ts';
import { P256_CASES } from './p256-cases.ts';
import { sodiumNative } from './sodium-native.ts';

const sodiumWith = (verify: Sodium['crypto_sign_verify_detached']): Sodium => ({
  crypto_sign_verify_detached: verify,
});

const engineWith = async (sodium: Sodium): Promise<CryptoEngine> => {
  const crypto = nodeCrypto();
  if (!crypto) throw new Error('this runtime has no node:crypto');
  return sodiumEngine(crypto, sodium, undefined);
};

describe('sodium (the verdicts themselves: engines.test.ts)', () => {
  it('verifies Ed25519, and only what passed the common checks; P-256 stays with node:crypto', async () => {
    let asked = 0;
    const sodium = sodiumWith((...given) => {
      asked += 1;
      return sodiumNative.crypto_sign_verify_detached(...given);
    });
    const engine = await engineWith(sodium);
    expect(engine.name).toBe('native');
    const askedFor = async ({ jwk, message, signature }: (typeof P256_CASES)[number]): Promise<number> => {
      asked = 0;
      const key = await engine.importKey(jwk);
      if (typeof key !== 'string') await engine.verify(key, message, signature);
      return asked;
    };
    for (const input of ED25519_CASES.filter(({ expected }) => expected === true)) {
      expect(await askedFor(input), input.name).toBe(1);
    }
    for (const input of ED25519_CASES.filter(({ name }) => /small order|not canonical|S \+ L/.test(name))) {
      expect(await askedFor(input), input.name).toBe(0);
    }
    for (const input of P256_CASES) expect(await askedFor(input), input.name).toBe(0);
  });

  it.each(['"@method": POST', 'ground 0', 'ground 1'])(
    'is not used when it differs in one known answer alone: %s',
    async (known) => {
      const sodium = sodiumWith((signature, message, key) => {
        const verdict = sodiumNative.crypto_sign_verify_detached(signature, message, key);
        return new TextDecoder().decode(message) === known ? !verdict : verdict;
      });
      await expect(engineWith(sodium)).rejects.toThrow(/^it does not give the verdicts/);
    },
  );

  it.each<[string, Sodium['crypto_sign_verify_detached']]>([
    // RFC 8032 §5.1.7 allows both equations; some builds of libsodium have this one.
    ['multiplies by the cofactor', (...[signature, message, key]) => ed25519.verify(signature, message, key)],
    ['accepts everything', () => true],
    ['refuses everything', () => false],
  ])('is not taken where it %s', async (_, verify) => {
    await expect(engineWith(sodiumWith(verify))).rejects.toThrow(/^it does not give the verdicts/);
  });

  it('is not taken where it throws', async () => {
    const verify = (): never => {
      throw new Error('out of memory');
    };
    await expect(engineWith(sodiumWith(verify))).rejects.toThrow('out of memory');
  });
});
