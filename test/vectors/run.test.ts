import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { generateKey, signDelivery } from '../../src/sender/sign.ts';
import type { KeyPair } from '../../src/sender/sign.ts';
import {
  type Answer,
  librarySubject,
  runVectors,
  type RunVectorsOptions,
  type VectorResult,
} from '../../src/vectors/index.ts';
import { folderOf } from './folder.ts';

const NOW = 1_788_000_000;
const URL_GIVEN = 'https://buyer.example/other/hooks';

const NONCE = 'AAAAAAAAAAAAAAAAAAAAAA';
const HMAC_SECRET = 'a-secret-of-at-least-thirty-two-characters';
const HMAC_VECTOR = {
  id: 'right',
  timestamp: NOW,
  raw_body: '{}',
  expected_signature: `sha256=${createHmac('sha256', HMAC_SECRET).update(`${NOW}.{}`).digest('hex')}`,
};
const hmacWith = (action: string) => ({
  secret: HMAC_SECRET,
  vectors: [{ ...HMAC_VECTOR, expected_verifier_action: action }],
});

/** Vectors as another publisher would write them, of a protocol with another name. */
async function foreign(key?: KeyPair) {
  const pair = key ?? (await generateKey('ed25519', 'webhook-signing', { kid: 'k1', protocol: 'ad-x' }));
  const { headers, body } = await signDelivery({
    url: URL_GIVEN,
    body: '{"any":"thing"}',
    key: pair.privateJwk,
    protocol: 'ad-x',
    now: () => NOW * 1000,
    nonce: NONCE,
    alphabet: 'base64',
  });
  return {
    pair,
    vector: {
      name: 'Foreign vector',
      spec_reference: '#somewhere',
      reference_now: NOW,
      request: { method: 'post', url: URL_GIVEN, headers, body: new TextDecoder().decode(body) },
      jwks_ref: ['k1'],
      expected_outcome: { success: true, error_code: null, failed_step: null },
    },
  };
}

const run = async (options: RunVectorsOptions): Promise<VectorResult> => {
  const [result, ...more] = await runVectors({ protocol: 'ad-x', ...options });
  if (!result || more.length > 0) throw new Error('expected one result');
  return result;
};

describe('vectors of other projects', () => {
  test('passes a positive vector with keys beside it, private parts in them and unknown members', async () => {
    const { pair, vector } = await foreign();
    const jwk = { ...pair.privateJwk, key_ops: ['verify'], _private_d_for_test_only: 'x' };
    const keys = { keys: [{ kty: 'oct', comment: 'no kid' }, jwk] };
    const dir = folderOf({ 'keys.json': keys, 'positive/001.json': vector });
    expect(await run({ dir })).toMatchObject({ passed: true, kind: 'signature', name: 'Foreign vector' });
    const { jwks_ref: _, ...allKeys } = vector;
    const without = folderOf({ 'keys.json': keys, 'positive/001.json': allKeys });
    expect((await run({ dir: without })).passed).toBe(true);
  });

  test('fails it under another protocol name: the name is an option', async () => {
    const { pair, vector } = await foreign();
    const dir = folderOf({ 'keys.json': { keys: [pair.publicJwk] }, 'positive/001.json': vector });
    expect(await run({ dir, protocol: 'proto' })).toMatchObject({
      passed: false,
      expected: 'authentic',
      actual: '401 webhook_signature_tag_invalid',
    });
  });

  test('headers as pairs, a body in base64, keys by jwks_override as a map or as a key set, no name, no outcome', async () => {
    const { pair, vector } = await foreign();
    const { body, ...request } = vector.request;
    const bare = {
      reference_now: NOW,
      request: {
        ...request,
        headers: Object.entries(request.headers),
        body_base64: Buffer.from(body).toString('base64'),
      },
    };
    const { kid: _, ...withoutKid } = pair.publicJwk;
    const dir = folderOf({
      'positive/map.json': { ...bare, jwks_ref: [], jwks_override: { k1: withoutKid } },
      'positive/set.json': { ...bare, jwks_override: { keys: [pair.publicJwk] } },
      'positive/sets-array.json': { ...bare, jwks_override: [pair.publicJwk] },
    });
    const results = await runVectors({ dir, protocol: 'ad-x' });
    expect(results.map(({ name, passed }) => [name, passed])).toEqual([
      ['map', true],
      ['set', true],
      ['sets-array', true],
    ]);
  });

  test('failed_step as a number or as text, codes translated by codeOf', async () => {
    const { pair, vector } = await foreign();
    const expired = { ...vector, reference_now: NOW + 1000 };
    const outcome = (error_code: string, failed_step: unknown) => ({
      ...expired,
      expected_outcome: { success: false, error_code, failed_step },
    });
    const dir = folderOf({
      'keys.json': { keys: [pair.publicJwk] },
      'negative/1.json': outcome('webhook_signature_window_invalid', 5),
      'negative/2.json': outcome('webhook_signature_window_invalid', '5'),
      'negative/4.json': outcome('request_signature_window_invalid', 5),
      'negative/5.json': outcome('their_signature_window_invalid', 5),
    });
    const passed = async (options: RunVectorsOptions) =>
      (await runVectors({ dir, protocol: 'ad-x', ...options })).map((result) => result.passed);
    expect(await passed({})).toEqual([true, true, true, false]);
    const codeOf = (code: string): string => code.replace(/^their_/, 'webhook_');
    expect(await passed({ codeOf })).toEqual([true, true, true, true]);
  });

  test('without a code: a refusal counts as refused, an answer that asks for a retry does not', async () => {
    const { pair, vector } = await foreign();
    const negative = (outcome: object) => ({ ...vector, expected_outcome: { success: false, ...outcome } });
    const keys = { keys: [pair.publicJwk] };
    const answeredBy = async (status: number, outcome: object = {}): Promise<boolean> => {
      const dir = folderOf({ 'keys.json': keys, 'negative/1.json': negative(outcome) });
      const subject = { open: () => ({ deliver: () => ({ status, code: null }) }) };
      return (await run({ dir, subject })).passed;
    };
    const passed = async (statuses: readonly number[], outcome?: object): Promise<boolean[]> =>
      Promise.all(statuses.map((status) => answeredBy(status, outcome)));
    expect(await passed([401, 403, 415])).toEqual([true, true, true]);
    expect(await passed([200, 302, 400, 408, 409, 429, 500, 503])).toEqual(Array(8).fill(false));
    expect(await passed([503, 401], { status: 503 })).toEqual([true, false]);
    expect(await passed([429, 503], { status: 429 })).toEqual([true, false]);
  });

  test.each([
    ['on a refusal before the base: not compared', { success: false, failed_step: 5 }, NOW + 1000, true],
    ['on a refusal by check 5, which the vector does not number', { success: false }, NOW + 1000, true],
    ['on a refusal after it: compared', { success: false, failed_step: 12 }, NOW, false],
    ['on a refusal after it, which the vector does not number', { success: false }, NOW, false],
    ['on a request that verifies: compared', { success: true }, NOW, false],
  ])('another signature base %s', async (_, expected_outcome, reference_now, passes) => {
    const { pair, vector } = await foreign();
    const more = expected_outcome.success
      ? {}
      : { test_harness_state: { replay_cache_entries: [{ keyid: 'k1', nonce: NONCE }] } };
    const judged = async (expected_signature_base: string): Promise<VectorResult> => {
      const content = { ...vector, ...more, reference_now, expected_outcome, expected_signature_base };
      return run({
        dir: folderOf({ 'keys.json': { keys: [pair.publicJwk] }, 'any/1.json': content }),
      });
    };
    const other = await judged('"@method": GET');
    expect(other.passed).toBe(passes);
    if (!passes) expect(other.detail).toMatch(/^signature base: first difference at byte 11/);
    expect((await judged('')).passed).toBe(true);
    const { request } = vector;
    const right = librarySubject().signatureBase({ ...request, method: 'POST', body: new Uint8Array() });
    expect((await judged(right ?? 'none')).passed).toBe(true);
  });

  test('a signature base of a URL that has no canonical form is not compared', async () => {
    const { pair, vector } = await foreign();
    const content = {
      ...vector,
      request: { ...vector.request, url: 'https://[::1/hooks' },
      expected_signature_base: '"@method": POST\n"@target-uri": https://[::1/hooks',
      expected_outcome: { success: false, error_code: 'webhook_target_uri_malformed', failed_step: 10 },
    };
    const dir = folderOf({ 'keys.json': { keys: [pair.publicJwk] }, 'negative/1.json': content });
    expect((await run({ dir })).passed).toBe(true);
  });

  test('a kid of jwks_ref that keys.json lacks is a key that nobody published, where a refusal is expected', async () => {
    const { pair, vector } = await foreign();
    const unknown = { success: false, error_code: 'webhook_signature_key_unknown', failed_step: 7 };
    const other = { ...pair.publicJwk, kid: 'k2' };
    for (const keys of [[], [other]]) {
      const content = { ...vector, jwks_ref: ['k1', ...keys.map(({ kid }) => kid)] };
      const files = { 'keys.json': { keys }, 'negative/1.json': { ...content, expected_outcome: unknown } };
      expect((await run({ dir: folderOf(files) })).actual).toBe(
        '401 webhook_signature_key_unknown (check 7)',
      );
      expect((await run({ dir: folderOf(files) })).passed).toBe(true);
      const positive = folderOf({ 'keys.json': { keys }, 'positive/1.json': content });
      expect((await run({ dir: positive })).actual).toMatch(
        /jwks_ref names "k1": expected a kid in keys\.json$/,
      );
    }
  });

  test('the edition decides which key purposes count', async () => {
    const { pair, vector } = await foreign(
      await generateKey('ed25519', 'request-signing', { kid: 'k1', protocol: 'ad-x' }),
    );
    const dir = folderOf({ 'keys.json': { keys: [pair.publicJwk] }, 'positive/1.json': vector });
    expect((await run({ dir, edition: '3.0' })).passed).toBe(false);
    expect((await run({ dir, edition: '3.2' })).passed).toBe(true);
    // It can only be of an edition in which such a key verifies.
    expect((await run({ dir })).passed).toBe(true);
    const old = folderOf({
      'keys.json': { keys: [pair.publicJwk] },
      'positive/1.json': { ...vector, edition: '3.0' },
    });
    expect((await run({ dir: old })).passed).toBe(false);
  });

  test('the state of the harness: replays, revoked and stale lists, a cap that is reached', async () => {
    const { pair, vector } = await foreign();
    const state = (test_harness_state: object, error_code: string, failed_step: unknown) => ({
      ...vector,
      test_harness_state,
      expected_outcome: { success: false, error_code, failed_step },
    });
    const nonce = { keyid: 'k1', nonce: NONCE, expires_at: NOW };
    const dir = folderOf({
      'keys.json': { keys: [pair.publicJwk] },
      'negative/a.json': state({ replay_cache_entries: [nonce] }, 'webhook_signature_replayed', 12),
      'negative/b.json': state({ revoked_kids: ['k1'] }, 'webhook_signature_key_revoked', 9),
      'negative/c.json': state(
        { revocation_list_stale_seconds: 7200 },
        'webhook_signature_revocation_stale',
        9,
      ),
      'negative/d.json': state({ per_keyid_cap_filled_for: 'k1' }, 'webhook_signature_rate_abuse', '9a'),
    });
    const results = await runVectors({ dir, protocol: 'ad-x' });
    expect(results.map(({ passed, actual }) => [passed, actual])).toEqual([
      [true, '401 webhook_signature_replayed (check 12)'],
      [true, '401 webhook_signature_key_revoked (check 9)'],
      [true, '503 webhook_signature_revocation_stale (check 9)'],
      [true, '429 webhook_signature_rate_abuse (check 9a)'],
    ]);
  });

  test.each([
    ['userinfo and a fragment', 'https://user@buyer.example/hooks#part', 'webhook_signature_invalid'],
    ['a star', 'https://buyer.example/hooks*?a=*', 'webhook_signature_invalid'],
    ['no canonical path', 'https://buyer.example/%%34%31', 'webhook_target_uri_malformed'],
    ['no canonical host', 'https://[::1/hooks', 'webhook_target_uri_malformed'],
    ['no scheme', 'buyer.example/hooks', 'webhook_target_uri_malformed'],
    ['another scheme', 'ftp://buyer.example/hooks', 'webhook_target_uri_malformed'],
  ])('a URL with %s goes through a receiver', async (_, url, error_code) => {
    const { pair, vector } = await foreign();
    const request = { ...vector.request, url };
    const expected_outcome = { success: false, error_code, failed_step: 10 };
    const dir = folderOf({
      'keys.json': { keys: [pair.publicJwk] },
      'negative/1.json': { ...vector, request, expected_outcome },
    });
    expect((await run({ dir })).actual).toBe(`401 ${error_code} (check 10)`);
  });

  test('runs with NODE_ENV=production', async () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      const { pair, vector } = await foreign();
      const dir = folderOf({ 'keys.json': { keys: [pair.publicJwk] }, 'positive/1.json': vector });
      expect((await run({ dir })).passed).toBe(true);
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });

  test('HMAC: the digest counts where no action is expected, the action where one is', async () => {
    const secret = 'a-secret-of-at-least-thirty-two-characters';
    const signature = 'sha256=8d4f1b3c0f2f9f0d7e4b8d1a7f0f6c1e5a9b3c7d2e8f4a6b0c5d9e3f7a1b4c8d';
    const vector = { id: 'wrong', timestamp: NOW, raw_body: '{}', expected_signature: signature };
    const file = folderOf({ 'hmac.json': { secret, vectors: [vector] } });
    expect(await run({ dir: file })).toMatchObject({
      passed: false,
      kind: 'hmac',
      actual: '401 webhook_signature_invalid',
    });
  });

  test.each([
    ['accept', true],
    ['Accepted', true],
    ['verify', true],
    ['valid', true],
    ['pass', true],
    ['success', true],
    ['ok', true],
    ['must_not_reject', true],
    ['reject', false],
    ['rejected', false],
    ['refuse', false],
    ['deny', false],
    ['invalid', false],
    ['fail', false],
    ['failure', false],
    ['error', false],
    ['must_reject', false],
    ['must-not-accept', false],
    ['must not accept', false],
    ['reject-malformed', false],
  ])('HMAC: expected_verifier_action %j: accepted is %j', async (action, accepted) => {
    const passed = async (answer: Answer): Promise<boolean> => {
      const dir = folderOf({ 'hmac.json': hmacWith(action) });
      return (await run({ dir, subject: { open: () => ({ deliver: () => answer }) } })).passed;
    };
    expect(await passed({ status: 200 })).toBe(accepted);
    expect(await passed({ status: 400 })).toBe(accepted);
    expect(await passed({ status: 401, code: 'webhook_body_malformed' })).toBe(!accepted);
    expect(await passed({ status: 503 })).toBe(false);
  });

  test.each([
    'maybe',
    '',
    'not_accept',
    'accept-or-reject',
    'reject-or-accept',
    'reject-not',
    'unacceptable',
  ])('HMAC: expected_verifier_action %j is not guessed', async (action) => {
    expect(await run({ dir: folderOf({ 'hmac.json': hmacWith(action) }) })).toMatchObject({
      kind: 'unreadable',
      passed: false,
      actual: expect.stringContaining(`expected_verifier_action ${JSON.stringify(action)} is not known`),
    });
  });

  test('HMAC: the library by the words of others', async () => {
    const vectors = [
      { ...HMAC_VECTOR, id: 'a', expected_verifier_action: 'pass' },
      { ...HMAC_VECTOR, id: 'b', expected_verifier_action: 'fail' },
      { ...HMAC_VECTOR, id: 'c', expected_verifier_action: 'must_not_accept' },
    ];
    const results = await runVectors({ dir: folderOf({ 'hmac.json': { secret: HMAC_SECRET, vectors } }) });
    expect(results.map(({ passed }) => passed)).toEqual([true, false, false]);
  });

  test('extraction: other words for the two transports', async () => {
    const payload = { task_id: 't', status: 'completed', result: { a: 1 } };
    const dir = folderOf({
      'extraction.json': {
        vectors: [
          { id: 'a', payload, expected_format: 'mcp', expected_data: { a: 1 } },
          { id: 'b', payload, expected_format: 'a2a', expected_data: { a: 1 } },
          { id: 'c', payload, expected_format: 'tool', expected_data: { a: 2 } },
        ],
      },
    });
    const results = await runVectors({ dir });
    expect(results.map(({ passed }) => passed)).toEqual([true, false, false]);
  });
});

describe('a test a vector', () => {
  test('is registered at once, passes or throws what the report says', async () => {
    const { pair, vector } = await foreign();
    const wrong = { ...vector, name: 'wrong', expected_outcome: { success: false, error_code: 'webhook_x' } };
    const dir = folderOf({
      'keys.json': { keys: [pair.publicJwk] },
      'positive/1.json': vector,
      'positive/2.json': wrong,
    });
    const registered: [string, () => Promise<void>][] = [];
    runVectors({ dir, protocol: 'ad-x', test: (name, body) => registered.push([name, body]) });
    expect(registered.map(([name]) => name)).toEqual(['signature: Foreign vector', 'signature: wrong']);
    await expect(registered[0]?.[1]()).resolves.toBeUndefined();
    await expect(registered[1]?.[1]()).rejects.toThrow(/^FAIL signature wrong[^]*expected webhook_x/);
  });
});

describe('runVectors: mistakes', () => {
  test('rejects an unknown option, which would run other vectors than intended', async () => {
    const wrong = { directory: 'their-vectors' } as object;
    await expect(runVectors(wrong)).rejects.toThrow(/runVectors: directory is not known\. Known: dir, files/);
    expect(() => runVectors({ ...wrong, test: () => {} })).toThrow(/directory is not known/);
  });
});
