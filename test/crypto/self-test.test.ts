import { describe, expect, it } from 'vitest';
import { createEngine, type CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { engineWorks } from '../../src/crypto/for-tests.ts';

const native = await createEngine('native');
const like = (other: Partial<CryptoEngine>): CryptoEngine => ({ ...native, ...other });

describe('engineWorks', () => {
  it('is true for an engine with both algorithms', async () => {
    expect(await engineWorks(native)).toBe(true);
  });

  it('is false for one that lacks either', async () => {
    for (const kty of ['OKP', 'EC']) {
      const lacking = like({
        importKey: async (jwk) => (jwk['kty'] === kty ? 'no' : native.importKey(jwk)),
      });
      expect(await engineWorks(lacking)).toBe(false);
    }
  });

  it('is false for one that throws, accepts or refuses everything', async () => {
    const fail = (): never => {
      throw new Error('engine');
    };
    expect(await engineWorks(like({ verify: fail }))).toBe(false);
    expect(await engineWorks(like({ verify: async () => fail() }))).toBe(false);
    expect(await engineWorks(like({ verify: () => true }))).toBe(false);
    expect(await engineWorks(like({ verify: async () => false }))).toBe(false);
  });
});
