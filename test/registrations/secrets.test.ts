import { describe, expect, it } from 'vitest';
import { nobleHashes } from '../../src/crypto/for-tests.ts';
import { ConfigError } from '../../src/index.ts';
import { secretsOf } from '../../src/registrations/for-tests.ts';
import { hashes, hkdf, idOf, NEWEST, OLDER } from './kit.ts';

const PURPOSES = ['route', 'token', 'arguments', 'credentials'] as const;

describe('the secrets of registrations', () => {
  it.each([
    ['the runtime', hashes],
    ['JavaScript', nobleHashes()],
  ])('derive a key for each purpose by HKDF-SHA256 with hashes of %s', (_, used) => {
    const { newest } = secretsOf([NEWEST, OLDER], used);
    for (const purpose of PURPOSES) {
      expect(Buffer.from(newest.keyFor(purpose)).toString('hex')).toBe(hkdf(NEWEST, purpose).toString('hex'));
      expect(newest.keyFor(purpose)).toBe(newest.keyFor(purpose));
    }
    expect(new Set(PURPOSES.map((purpose) => String(newest.keyFor(purpose)))).size).toBe(PURPOSES.length);
  });

  it('are known by an id that is derived too, the newest first', () => {
    const secrets = secretsOf([NEWEST, OLDER], hashes);
    expect(secrets.newest.id).toBe(idOf(NEWEST).toString('base64url'));
    expect(secrets.named(idOf(OLDER).toString('base64url'))?.keyFor('route')).toEqual(
      new Uint8Array(hkdf(OLDER, 'route')),
    );
    expect(secrets.named('AAAAAA')).toBeUndefined();
  });

  it.each([
    [[], /must be a list with at least one/],
    [undefined, /must be a list with at least one/],
    ['a string that is not a list, of more than 32 characters', /must be a list with at least one/],
    [['x'.repeat(32)], /^secrets\[0\]: is one character, repeated\. Give a random one\.$/],
    [[NEWEST, '\u{1F511}'.repeat(32)], /^secrets\[1\]: is one character, repeated\./],
    [['x'.repeat(31)], /secrets\[0\]: less than 32/],
    [[undefined], /^secrets\[0\]: is undefined\. Is the environment variable set\?$/],
    [[NEWEST, ''], /^secrets\[1\]: is empty\. Is the environment variable set\?$/],
    [[NEWEST, 7], /secrets\[1\]: less than 32/],
    [[NEWEST, OLDER, NEWEST], /secrets\[2\]: is a duplicate/],
  ])('%j is a mistake of configuration', (given, message) => {
    const make = (): unknown => secretsOf(given as string[], hashes);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it('do not show in what a mistake says', () => {
    const short = 'not-long-enough';
    expect(() => secretsOf([short], hashes)).toThrow(expect.not.stringContaining(short));
    expect(() => secretsOf([NEWEST, NEWEST], hashes)).toThrow(expect.not.stringContaining(NEWEST));
  });
});
