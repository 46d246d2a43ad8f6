import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestMatches, readContentDigest } from '../../../src/auth/for-tests.ts';
import { BODY, hashes } from './support.ts';

const digest = createHash('sha256').update(BODY).digest();
const standard = digest.toString('base64');
const url = digest.toString('base64url');
const sha512 = createHash('sha512').update(BODY).digest('base64');

describe('Content-Digest (verification.md §2.1, §2.11, §3.1)', () => {
  test.each([
    ['unpadded base64url', `sha-256=:${url}:`],
    ['padded standard base64', `sha-256=:${standard}:`],
    ['unpadded standard base64', `sha-256=:${standard.replace('=', '')}:`],
    ['other members beside it', `sha-512=:${sha512}:, sha-256=:${url}:`],
    ['a wrong member of another algorithm', `sha-256=:${url}:, sha-512=:AAAA:`],
    ['a parameter', `sha-256=:${url}:;x=1`],
  ])('%s matches', (_, line) => {
    const read = readContentDigest([line]);
    expect(read).toEqual({ sha256: new Uint8Array(digest) });
    expect(typeof read !== 'string' && digestMatches(read, BODY, hashes)).toBe(true);
  });

  test('no sha-256 member is a mismatch, and so is another digest', () => {
    const none = readContentDigest([`sha-512=:${sha512}:`]);
    const other = readContentDigest([`sha-256=:${'A'.repeat(43)}:`]);
    expect(none).toEqual({ sha256: undefined });
    for (const read of [none, other])
      expect(typeof read !== 'string' && digestMatches(read, BODY, hashes)).toBe(false);
  });

  test.each([
    ['31 bytes', [`sha-256=:${Buffer.alloc(31).toString('base64')}:`]],
    ['33 bytes', [`sha-256=:${Buffer.alloc(33).toString('base64')}:`]],
    ['no bytes', ['sha-256=::']],
    ['a token', ['sha-256=abc']],
    ['a string', [`sha-256="${url}"`]],
    ['a flag', ['sha-256']],
    ['mixed alphabets', [`sha-256=:${'+_'.repeat(21)}A:`]],
    ['trailing bits', [`sha-256=:${'A'.repeat(42)}B:`]],
    ['inner padding', [`sha-256=:${'A'.repeat(20)}=${'A'.repeat(22)}=:`]],
    ['a label twice', [`sha-256=:${url}:, sha-256=:${url}:`]],
    ['another label twice', [`sha-256=:${url}:, sha-512=:AAAA:, sha-512=:AAAA:`]],
    ['repeated lines', [`sha-256=:${url}:`, `sha-256=:${url}:`]],
    ['repeated lines of two algorithms', [`sha-256=:${url}:`, `sha-512=:${sha512}:`]],
    ['upper case', [`SHA-256=:${url}:`]],
    ['nothing', ['']],
    ['another member that does not parse', [`sha-256=:${url}:, x=:!:`]],
  ])('%s does not parse', (_, lines) => {
    expect(typeof readContentDigest(lines)).toBe('string');
  });

  test('never throws, whatever the string', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (tail) => {
        expect(['string', 'object']).toContain(typeof readContentDigest([`sha-256=${tail}`]));
      }),
    );
  });
});
