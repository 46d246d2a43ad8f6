import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { ALL_ENGINES } from '../crypto/all-engines.ts';
import { flip, okp } from '../crypto/make.ts';
import { inThisForm } from '../reliability/form.ts';

/*
 * The 1,024 Ed25519 vectors of the reference implementation (sign.input), which `@stablelib/ed25519` ships in its own
 * test: secret key (seed, then public key), message, signature, each in base64.
 */
const require = createRequire(import.meta.url);
const file = require.resolve('@stablelib/ed25519/ed25519.test.ts');
const VECTOR = /\[\s*"([A-Za-z0-9+/=]{88})",\s*"([A-Za-z0-9+/=]*)",\s*"([A-Za-z0-9+/=]{88})"\s*\]/g;
const bytes = (text = ''): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));

const vectors = [...readFileSync(file, 'utf8').matchAll(VECTOR)].map(([, secret, message, signature]) => ({
  jwk: okp(bytes(secret).slice(32)),
  message: bytes(message),
  signature: bytes(signature),
}));

describe('the vectors of @stablelib/ed25519', () => {
  test('are there', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(1024);
  });

  // `npm test` has all but the slowest.
  test.each(inThisForm(ALL_ENGINES, ([name]) => name !== 'noble'))('%s', async (_, engine) => {
    for (const [i, { jwk, message, signature }] of vectors.entries()) {
      const key = await engine.importKey(jwk);
      if (typeof key === 'string') throw new Error(`vector ${i}: ${key}`);
      expect(await engine.verify(key, message, signature), `vector ${i}`).toBe(true);
      expect(await engine.verify(key, message, flip(signature, i)), `vector ${i}, spoilt`).toBe(false);
    }
  });
});
