import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatReport, runVectors, VectorError, type RunVectorsOptions } from '../../src/vectors/index.ts';
import { folderOf } from './folder.ts';

async function failure(options: RunVectorsOptions): Promise<Error> {
  try {
    await runVectors(options);
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('runVectors did not reject');
}

const request = { url: 'https://buyer.example/', headers: {} };

describe('bad input gives one line with what was expected', () => {
  test.each([
    ['not JSON', '{', /is not JSON .*: expected a JSON file of vectors$/],
    ['no object', '[]', /no known shape of vectors: expected one of \{request/],
    ['an unknown shape', { hello: 1 }, /no known shape of vectors: expected one of/],
    ['no vectors in a known shape', { cases: [] }, /no vectors: expected at least one/],
    [
      'no reference_now',
      { request, expected_outcome: { success: true } },
      /reference_now is missing or wrong: expected a number/,
    ],
    [
      'no outcome',
      { request, reference_now: 1 },
      /expected_outcome\.success is missing: expected true or false/,
    ],
    [
      'a kid that keys.json lacks',
      { request, reference_now: 1, jwks_ref: ['k'], expected_outcome: { success: true } },
      /jwks_ref names "k": expected a kid in keys\.json/,
    ],
    [
      'headers of no known form',
      { request: { ...request, headers: 'x' }, reference_now: 1, expected_outcome: { success: true } },
      /request\.headers is missing or wrong: expected an object/,
    ],
    [
      'an edition that is not known',
      { request, reference_now: 1, edition: '9', expected_outcome: { success: true } },
      /edition: "9" is not known/,
    ],
    [
      'a nonce of the state that is wrong',
      {
        request,
        reference_now: 1,
        test_harness_state: {
          replay_cache_entries: [
            { keyid: 'k', nonce: 'n' },
            { keyid: 'k', nonce: 5 },
          ],
        },
        expected_outcome: { success: true },
      },
      /test_harness_state\.replay_cache_entries\[1\]\.nonce is missing or wrong: expected a string/,
    ],
    [
      'a body that is not base64',
      { request: { ...request, body_base64: '%' }, reference_now: 1, expected_outcome: { success: true } },
      /body_base64 is missing or wrong: expected base64/,
    ],
  ])('%s', async (_, content, message) => {
    const file = join(folderOf({ 'vector.json': content }), 'vector.json');
    const error = await failure({ files: [file] });
    expect(error).toBeInstanceOf(VectorError);
    expect(error.message).toMatch(message);
    expect(error.message.startsWith(`${file}: `)).toBe(true);
    expect(error.message).not.toContain('\n');
  });

  test('a missing file', async () => {
    const file = join(folderOf({}), 'none.json');
    expect((await failure({ files: [file] })).message).toMatch(
      /none\.json: cannot be read .*: expected a JSON file$/,
    );
  });

  test.each([
    [
      'that is not there',
      (dir: string) => join(dir, 'none'),
      /none: cannot be read .*: expected a folder of vectors$/,
    ],
    [
      'that is a file',
      (dir: string) => join(dir, 'a.txt'),
      /a\.txt: cannot be read \(not a folder\): expected a folder/,
    ],
    ['without vectors', (dir: string) => dir, /: has no vectors: expected JSON files like/],
  ])('a folder %s', async (_, path, message) => {
    const dir = folderOf({ 'a.txt': 'a', 'keys.json': { keys: [] } });
    expect((await failure({ dir: path(dir) })).message).toMatch(message);
  });

  test('an invalid keys.json', async () => {
    const vector = { request, reference_now: 1, expected_outcome: { success: true } };
    const file = join(folderOf({ 'keys.json': { keys: 1 }, 'positive/a.json': vector }), 'positive/a.json');
    expect((await failure({ files: [file] })).message).toMatch(
      /keys\.json: is not a key set: expected \{keys: \[JWK, …\]\}$/,
    );
  });

  test('an unknown protocol and edition', async () => {
    expect(await failure({ protocol: 'A B' })).toMatchObject({ code: 'config_error' });
    expect(await failure({ edition: '9' as '3.0' })).toMatchObject({ code: 'config_error' });
  });

  test('an empty list of files does not run the package’s own vectors', async () => {
    expect((await failure({ files: [] })).message).toBe(
      'files is empty: expected at least one file, or a dir',
    );
  });

  test('a key set named as a file of vectors', async () => {
    const file = join(folderOf({ 'keys.json': { keys: [{ kid: 'k' }] } }), 'keys.json');
    expect((await failure({ files: [file] })).message).toMatch(/keys\.json: no known shape of vectors/);
  });

  test('a key set among named files, as from `*.json`, is skipped', async () => {
    const urls = { cases: [{ name: 'n', input_url: 'x', reject: true }] };
    const dir = folderOf({ 'keys.json': { keys: [{ kid: 'k' }] }, 'urls.json': urls, 'bad.json': {} });
    const named = (...files: readonly string[]) => ({ files: files.map((file) => join(dir, file)) });
    const results = await runVectors(named('keys.json', 'urls.json'));
    expect(results.map(({ name, passed }) => [name, passed])).toEqual([['n', true]]);
    expect((await failure(named('keys.json', 'bad.json'))).message).toMatch(/bad\.json: no known shape/);
    expect((await failure(named('keys.json', 'keys.json'))).message).toMatch(/keys\.json: no known shape/);
  });

  test('a subject without functions', async () => {
    expect((await failure({ subject: {} })).message).toMatch(/^subject: no vector can be run: expected open/);
  });
});

describe('one bad file among others', () => {
  test('is a case that fails; the others run', async () => {
    const dir = folderOf({
      'a.json': { hello: 1 },
      'sub/urls.json': { cases: [{ name: 'n', input_url: 'x', reject: true }] },
      'readme.md': '# not looked at',
      'jwks.json': { keys: [{ kid: 'no vector either' }] },
    });
    const results = await runVectors({ dir });
    expect(results.map(({ kind, name, passed }) => [kind, name, passed])).toEqual([
      ['unreadable', 'a.json', false],
      ['canonicalization', 'n', true],
    ]);
    expect(formatReport(results)).toMatch(/no known shape of vectors[^]*1 passed, 1 failed$/);
  });

  test.each([
    [
      'urls.json',
      {
        cases: [
          { name: 'n', input_url: 'x' },
          { input_url: 'x', reject: true },
        ],
      },
      /n: no expectation: expected expected_target_uri/,
    ],
    [
      'hmac.json',
      { secret: 's-'.repeat(16), vectors: [{ id: 'n' }] },
      /n: timestamp is missing or wrong: expected Unix seconds/,
    ],
    [
      'bearer.json',
      { token: 's-'.repeat(16), vectors: [{ id: 'n' }] },
      /n: expected is missing or wrong: expected an object/,
    ],
    [
      'envelope.json',
      { negative: [{ id: 'n', payload: {} }] },
      /n: expected_error is missing or wrong: expected a code/,
    ],
    [
      'sequences.json',
      { sequences: [{ name: 'n', reference_now: 1, steps: [] }] },
      /n: steps is empty: expected at least one/,
    ],
    [
      'extraction.json',
      { vectors: [{ id: 'n', expected_format: 1 }] },
      /n: expected_format is missing or wrong: expected a string/,
    ],
  ])('one bad vector among others of %s fails alone', async (name, content, message) => {
    const file = join(folderOf({ [name]: content }), name);
    const [first, ...others] = await runVectors({ files: [file] });
    expect(first).toMatchObject({
      kind: 'unreadable',
      name: 'n',
      passed: false,
      actual: expect.stringMatching(message),
    });
    expect(others.every(({ passed }) => passed)).toBe(true);
  });

  test('keys that a receiver cannot be given fail the vector with the reason', async () => {
    const jwk = { kid: 'twice', kty: 'OKP' };
    const vector = {
      request: { ...request, body: '{}' },
      reference_now: 1_790_000_000,
      jwks_override: { keys: [jwk, jwk] },
      expected_outcome: { success: true },
    };
    const [result] = await runVectors({ dir: folderOf({ 'positive/a.json': vector }) });
    expect(result).toMatchObject({ passed: false, actual: expect.stringMatching(/twice/) });
  });
});
