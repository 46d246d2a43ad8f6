import { createHmac } from 'node:crypto';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generateKey, signDelivery } from '../../src/sender/sign.ts';
import {
  formatReport,
  runVectors,
  type RunVectorsOptions,
  type Skipped,
  type VectorResult,
} from '../../src/vectors/index.ts';
import { folderOf } from './folder.ts';

const NOW = 1_788_000_000;
const URL_GIVEN = 'https://buyer.example/hooks';
const SECRET = 'a-secret-of-at-least-thirty-two-characters';
const pair = await generateKey('ed25519', 'webhook-signing', { kid: 'k1' });
const keys = { keys: [pair.publicJwk] };

const mac = (timestamp: number | string, body = '{}'): string =>
  `sha256=${createHmac('sha256', SECRET).update(`${timestamp}.${body}`).digest('hex')}`;
const HMAC = { id: 'n', timestamp: NOW, raw_body: '{}', expected_signature: mac(NOW) };

async function signedAt(now: number, payload: object = { any: 'thing' }) {
  const body = JSON.stringify(payload);
  const { headers } = await signDelivery({
    url: URL_GIVEN,
    body,
    key: pair.privateJwk,
    now: () => now * 1000,
  });
  return { method: 'POST', url: URL_GIVEN, headers, body };
}

const envelope = { idempotency_key: 'key-0123456789abcdef', task_id: 't', status: 'completed' };
const request = await signedAt(NOW);
const vector = {
  name: 'n',
  reference_now: NOW,
  request,
  jwks_ref: ['k1'],
  expected_outcome: { success: true },
};
const refused = { ...vector, reference_now: NOW + 1000 };

interface VectorsRun {
  readonly results: readonly VectorResult[];
  readonly skipped: readonly Skipped[];
  readonly text: string;
}

async function runFolder(
  files: Readonly<Record<string, unknown>>,
  options: RunVectorsOptions = {},
): Promise<VectorsRun> {
  const skipped: Skipped[] = [];
  const dir = folderOf({ 'keys.json': keys, ...files });
  const results = await runVectors({ dir, onSkipped: (one) => skipped.push(one), ...options });
  return { results, skipped, text: formatReport(results, { skipped }) };
}

const only = ({ results }: VectorsRun): VectorResult => {
  const [result, ...more] = results;
  if (!result || more.length > 0) throw new Error('expected one result');
  return result;
};

describe('an unusable vector is an error that names the member, never a pass', () => {
  const outcome = (expected_outcome: object) => ({ 'a.json': { ...vector, expected_outcome } });
  const hmac = (more: object, top: object = {}) => ({
    'hmac.json': { secret: SECRET, vectors: [{ ...HMAC, ...more }], ...top },
  });
  const step = (more: object) => ({
    'sequences.json': {
      sequences: [
        { name: 'n', reference_now: NOW, steps: [{ request, expected: { status: 400 }, ...more }] },
      ],
    },
  });
  const positive = (more: object) => ({
    'envelope.json': { positive: [{ id: 'n', payload: envelope, ...more }] },
  });

  test.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['an outcome', outcome({ success: true, must_log: true }), /expected_outcome\.must_log is not known/],
    [
      'an outcome in other words',
      { 'positive/a.json': { ...vector, expected_outcome: { authentik: false } } },
      /expected_outcome\.authentik is not known/,
    ],
    [
      'an outcome beside the outcome',
      { 'a.json': { ...vector, expected_alarm: 'x' } },
      /expected_alarm is not known/,
    ],
    [
      'the same in another spelling',
      { 'a.json': { ...vector, shouldReject: true } },
      /shouldReject is not known/,
    ],
    [
      'a state',
      { 'a.json': { ...vector, test_harness_state: { store_is_down: true } } },
      /test_harness_state\.store_is_down is not known/,
    ],
    [
      'a state beside the state',
      { 'a.json': { ...vector, harness: { store: 'down' } } },
      /harness is not known/,
    ],
    [
      'a request',
      { 'a.json': { ...vector, request: { ...request, body_hex: '00' } } },
      /request\.body_hex is not known/,
    ],
    [
      'a list of further steps',
      { 'a.json': { ...vector, next_steps: [{ request }] } },
      /next_steps is an unknown list/,
    ],
    [
      'a sender',
      { 'a.json': { ...vector, senders: [{ jwks_ref: ['k1'], blocked: true }] } },
      /senders\[0\]\.blocked is not known/,
    ],
    [
      'an authentication',
      { 'a.json': { ...vector, authentication: { schemes: ['Bearer'], credentials: SECRET, realm: 'x' } } },
      /authentication\.realm is not known/,
    ],
    [
      'an expectation of an HMAC vector',
      hmac({ expected: { verdict: 'reject', blame: 'x' } }),
      /expected\.blame is not known/,
    ],
    ['an expectation of nothing', hmac({ expected: {} }), /expected is empty: expected at least one of /],
    [
      'an expectation that is not an object and no word',
      hmac({ expected: 42 }),
      /expected is missing or wrong/,
    ],
    ['an expectation in another member', hmac({ expected_result: 'reject' }), /expected_result is not known/],
    [
      'a list of other vectors',
      hmac({ id: 'read' }, { replay_vectors: [HMAC] }),
      /replay_vectors is an unknown list/,
    ],
    [
      'a receiver',
      {
        'sequences.json': {
          sequences: [
            {
              name: 'n',
              reference_now: NOW,
              receiver: { mode: 'inbox' },
              steps: [{ request, expected: { status: 400 } }],
            },
          ],
        },
      },
      /receiver\.mode is not known/,
    ],
    ['a step', step({ repeat: 3 }), /steps\[0\]\.repeat is not known/],
    [
      'an expectation of a step',
      step({ expected: { status: 400, alarms: [] } }),
      /steps\[0\]\.expected\.alarms is not known/,
    ],
    ['a step that expects nothing', step({ expected: {} }), /steps\[0\].expected is empty/],
    ['an envelope', positive({ expected_kind: 'task' }), /expected_kind is not known/],
    [
      'an envelope that is taken with an error',
      positive({ expected_error: 'missing_envelope_fields' }),
      /expected_error is not known/,
    ],
    [
      'an extraction that expects nothing',
      {
        'x.json': {
          vectors: [
            { id: 'n', payload: {} },
            { payload: {}, expected_format: null },
          ],
        },
      },
      /n: no expectation: expected expected_format or expected_data/,
    ],
    [
      'an extraction of nothing',
      { 'x.json': { vectors: [{ id: 'n', expected_format: null }] } },
      /n: payload is missing/,
    ],
    [
      'an extraction in another member',
      { 'x.json': { vectors: [{ id: 'n', payload: {}, expected_format: null, expected_kind: 'x' }] } },
      /expected_kind is not known/,
    ],
    [
      'a URL',
      {
        'u.json': {
          cases: [{ name: 'n', input_url: URL_GIVEN, expected_target_uri: URL_GIVEN, expected_path: '/' }],
        },
      },
      /expected_path is not known/,
    ],
    [
      'a URL with a form that is refused',
      { 'u.json': { cases: [{ name: 'n', input_url: 'x', reject: true, expected_target_uri: 'x' }] } },
      /reject contradicts expected_target_uri/,
    ],
    [
      'a URL that is not refused, and has no form',
      { 'u.json': { cases: [{ name: 'n', input_url: 'x', reject: false }] } },
      /no expectation/,
    ],
    [
      'success with an error',
      outcome({ success: true, error_code: 'webhook_signature_invalid' }),
      /expected_outcome: error_code contradicts success/,
    ],
    [
      'two words for one thing',
      outcome({ success: false, error_code: 'a', code: 'b' }),
      /expected_outcome: error_code and code differ/,
    ],
    ['a file', { 'a.json': { something: 'else' } }, /no known shape of vectors/],
    [
      'keys with something beside them',
      { 'a.json': { keys: [], something_vectors: [{}] } },
      /no known shape of vectors/,
    ],
  ])('%s', async (_, files, message) => {
    const { results } = await runFolder(files);
    expect(results.filter(({ passed }) => passed).map(({ name }) => name)).not.toContain('n');
    expect(results.filter(({ kind }) => kind === 'unreadable').map(({ actual }) => actual)).toEqual([
      expect.stringMatching(message),
    ]);
  });

  test('names the known values and the fix', async () => {
    const { actual } = only(await runFolder(outcome({ success: true, must_log: true })));
    expect(actual).toMatch(
      /expected one of success, .*error_code, .*; if it is a comment, name it in ignore$/,
    );
    const run = await runFolder(outcome({ success: true, must_log: true }), { ignore: ['must_log'] });
    expect(only(run)).toMatchObject({ passed: true });
    expect(run.text).toMatch(/^ignored: 1 member must_log: /m);
  });

  test('vectors beside keys are judged', async () => {
    const both = {
      ...keys,
      cases: [{ name: 'n', input_url: 'https://A.example', expected_target_uri: 'wrong' }],
    };
    expect(only(await runFolder({ 'a.json': both }))).toMatchObject({
      kind: 'canonicalization',
      passed: false,
    });
  });

  test('an expectation without a comparable member fails', async () => {
    const subject = { open: () => ({ deliver: () => ({ status: 200 }) }) };
    const content = {
      sequences: [
        { name: 'n', reference_now: NOW, steps: [{ request, expected: { handled: false, changed: true } }] },
      ],
    };
    expect(only(await runFolder({ 's.json': content }, { subject }))).toMatchObject({
      passed: false,
      detail: expect.stringMatching(/the subject reports none of handled, changed/),
    });
  });
});

describe('members without an expectation are skipped, counted and named', () => {
  test('comments', async () => {
    const comments = {
      $schema: 'x',
      $comment: 'x',
      _private: 'x',
      'x-note': 'x',
      id: 'i',
      title: 'x',
      description: 'x',
      comment: 'x',
      notes: ['x'],
      reason: 'x',
      rationale: 'x',
      reference: '#x',
      references: [{ url: 'x' }],
      spec_reference: '#x',
      tags: ['x'],
      category: 'x',
      version: 1,
      since: '3.0',
    };
    const run = await runFolder({
      'a.json': {
        ...comments,
        ...vector,
        request: { ...request, $comment: 'x' },
        expected_outcome: { success: true, reason: 'x' },
      },
      'h.json': { ...comments, secret: SECRET, vectors: [{ ...comments, ...HMAC }] },
    });
    expect(run.results.map(({ passed }) => passed)).toEqual([true, true]);
    expect(run.skipped).toEqual([]);
    expect(run.text).toMatch(/\n2 passed, 0 failed$/);
  });

  test('unknown members when nothing is decided', async () => {
    const more = { requires_contract: 'x', verifier_capability: { supported: true } };
    const entries = {
      replay_cache_entries: [{ keyid: 'k1', nonce: 'AAAAAAAAAAAAAAAAAAAAAA', ttl_seconds: 300 }],
    };
    const run = await runFolder({
      'positive/a.json': { ...vector, ...more },
      'positive/b.json': { ...vector, ...more, test_harness_state: entries },
    });
    expect(run.results.map(({ passed }) => passed)).toEqual([true, true]);
    const name = (at: string) => expect.stringMatching(at);
    expect(run.skipped).toEqual([
      { what: 'member', name: 'requires_contract', file: name('a.json'), why: 'not known' },
      { what: 'member', name: 'verifier_capability', file: name('a.json'), why: 'not known' },
      { what: 'member', name: 'requires_contract', file: name('b.json'), why: 'not known' },
      { what: 'member', name: 'verifier_capability', file: name('b.json'), why: 'not known' },
      { what: 'member', name: 'ttl_seconds', file: name('b.json'), why: 'not known' },
    ]);
    expect(run.text).toMatch(
      /\nignored: 2 members requires_contract: not known\nignored: 2 members verifier_capability: not known\nignored: 1 member ttl_seconds: not known\n2 passed, 0 failed$/,
    );
  });

  test('key sets of other names, other kinds of files, links to folders', async () => {
    const dir = folderOf({
      'keys.json': keys,
      'sub/jwks.json': keys,
      'b.yaml': 'a: b',
      'c.jsonl': '{}',
      'd.md': '#',
      'A.JSON': vector,
    });
    const other = join(dir, 'other');
    mkdirSync(join(dir, 'node_modules'));
    symlinkSync(join(dir, 'sub'), other);
    const skipped: Skipped[] = [];
    const results = await runVectors({ dir, onSkipped: (one) => skipped.push(one) });
    expect(results.map(({ passed }) => passed)).toEqual([true]);
    expect(skipped).toEqual([
      { what: 'file', name: 'b.yaml', file: join(dir, 'b.yaml'), why: 'not JSON' },
      { what: 'file', name: 'c.jsonl', file: join(dir, 'c.jsonl'), why: 'not JSON' },
      { what: 'file', name: 'other', file: other, why: 'a link to a folder' },
      { what: 'file', name: join('sub', 'jwks.json'), file: join(dir, 'sub/jwks.json'), why: 'a key set' },
    ]);
    expect(formatReport(results, { skipped, failuresOnly: true })).toBe(
      [
        'not judged: 1 file b.yaml: not JSON',
        'not judged: 1 file c.jsonl: not JSON',
        'not judged: 1 file other: a link to a folder',
        `not judged: 1 file ${join('sub', 'jwks.json')}: a key set`,
        '1 passed, 0 failed, 4 not judged',
      ].join('\n'),
    );
  });

  test('kinds without a function of the subject', async () => {
    const subject = { targetUri: () => ({ targetUri: 'a', authority: 'a' }) };
    const url = { cases: [{ name: 'u', input_url: 'a', expected_target_uri: 'a' }] };
    const run = await runFolder({ 'u.json': url, 'a.json': vector, 'b.json': vector }, { subject });
    expect(run.results).toHaveLength(1);
    expect(run.skipped.map(({ what, name, why }) => [what, name, why])).toEqual([
      ['vector', 'n', 'signature: the subject has no open'],
      ['vector', 'n', 'signature: the subject has no open'],
    ]);
    expect(run.text).toMatch(
      /\nnot judged: 2 vectors: signature: the subject has no open\n1 passed, 0 failed, 2 not judged$/,
    );
  });

  test('nothing of the package’s own vectors is skipped', async () => {
    const skipped: Skipped[] = [];
    const results = await runVectors({ onSkipped: (one) => skipped.push(one) });
    expect(skipped).toEqual([]);
    expect(results.filter(({ passed, notes }) => !passed || notes)).toEqual([]);
  });

  test('no usable vector is an error', async () => {
    await expect(runFolder({ 'b.yaml': 'a: b' })).rejects.toThrow(
      /: has no vectors: expected JSON files like .*; skipped: b\.yaml \(not JSON\)$/,
    );
  });
});

describe('the number of the check', () => {
  const full = { ...vector, test_harness_state: { per_keyid_cap_filled_for: 'k1' } };
  const error_code = 'webhook_signature_rate_abuse';

  test.each([
    [9, 'a'],
    ['9', 'a'],
    ['9a', undefined],
    [9, '9a'],
    ['9a', null],
    [' 9 ', 'A'],
    [9, '.a'],
    [9, '(a)'],
  ])('%j with sub_step %j is 9a', async (step, sub) => {
    const expected_outcome = { success: false, error_code, failed_step: step, sub_step: sub };
    const result = only(await runFolder({ 'a.json': { ...full, expected_outcome } }));
    expect(result).toMatchObject({ passed: true, actual: '429 webhook_signature_rate_abuse (check 9a)' });
    expect(result.notes).toBeUndefined();
  });

  test.each([
    [5, undefined, undefined],
    ['5', undefined, undefined],
    [6, undefined, '6'],
    [5, 'b', '5b'],
    ['six', undefined, 'six'],
  ])('%j with sub_step %j is shown as different, and does not fail', async (step, sub, shown) => {
    const run = await runFolder({
      'a.json': { ...refused, expected_outcome: { success: false, failed_step: step, sub_step: sub } },
    });
    expect(only(run).passed).toBe(true);
    expect(only(run).notes).toEqual(shown === undefined ? undefined : [`check: expected ${shown}, got 5`]);
    expect(run.text).toBe(
      shown === undefined
        ? 'ok   signature n\n1 passed, 0 failed'
        : `ok   signature n\n    note     check: expected ${shown}, got 5\n1 passed, 0 failed, 1 with a note`,
    );
  });

  test('is shown beside a failure of the rest', async () => {
    const run = await runFolder({
      'a.json': { ...refused, expected_outcome: { success: false, error_code: 'webhook_x', failed_step: 6 } },
    });
    expect(only(run)).toMatchObject({ passed: false, notes: ['check: expected 6, got 5'] });
    expect(run.text).toMatch(
      /code: expected "webhook_x".*\n    note     check: expected 6, got 5\n0 passed, 1 failed, 1 with a note$/,
    );
  });

  test.each([true, {}, []])('%j is no number of a check', async (step) => {
    const { actual } = only(
      await runFolder({ 'a.json': { ...refused, expected_outcome: { success: false, failed_step: step } } }),
    );
    expect(actual).toMatch(/failed_step is missing or wrong: expected a number or a text/);
  });
});

describe('other spellings of the same', () => {
  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['an outcome as a word', { 'a.json': { ...refused, expected_outcome: 'reject' } }],
    [
      'an outcome in expected',
      { 'a.json': { ...refused, expected_outcome: undefined, expected: { valid: false } } },
    ],
    ['a verdict as a word', { 'a.json': { ...refused, expected_outcome: { verdict: 'reject' } } }],
    [
      'code and http_status',
      {
        'a.json': {
          ...refused,
          expected_outcome: { accepted: false, code: 'webhook_signature_window_invalid', http_status: 401 },
        },
      },
    ],
    [
      'error',
      {
        'a.json': {
          ...refused,
          expected_outcome: { success: false, error: 'webhook_signature_window_invalid' },
        },
      },
    ],
    [
      'a raw body',
      { 'a.json': { ...vector, request: { ...request, body: undefined, raw_body: request.body } } },
    ],
    [
      'several signatures in a file',
      {
        'a.json': {
          reference_now: NOW,
          jwks_ref: ['k1'],
          vectors: [{ id: 'n', request, expected_outcome: { success: true } }],
        },
      },
    ],
    ['an array of vectors', { 'a.json': [vector] }],
    [
      'a revocation list',
      {
        'a.json': {
          ...vector,
          test_harness_state: { revocation_list: { issuer: 'x', revoked_kids: ['k1'] } },
          expected_outcome: { success: false, error_code: 'webhook_signature_key_revoked' },
        },
      },
    ],
    ['HMAC: a word', { 'h.json': { secret: SECRET, vectors: [{ ...HMAC, expected: 'accept' }] } }],
    [
      'HMAC: what is refused in a list of its own',
      {
        'h.json': {
          secret: SECRET,
          rejection_vectors: [{ id: 'n', timestamp: NOW, raw_body: '{}', signature: mac(NOW, '[]') }],
        },
      },
    ],
    [
      'a URL that is refused with a code',
      {
        'u.json': {
          cases: [
            { name: 'n', input_url: 'x', reject: true, expected_error: 'webhook_target_uri_malformed' },
          ],
        },
      },
    ],
  ])('%s', async (_, files) => {
    const run = await runFolder(files);
    expect(only(run)).toMatchObject({ name: expect.stringMatching(/^n$|^a$/), passed: true });
    expect(run.skipped).toEqual([]);
  });

  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['a word', { 'a.json': { ...vector, expected_outcome: 'reject' } }],
    [
      'an action and an expectation: both count',
      {
        'h.json': {
          secret: SECRET,
          vectors: [{ ...HMAC, expected_verifier_action: 'reject', expected: { status: 400 } }],
        },
      },
    ],
    ['http_status', { 'a.json': { ...refused, expected_outcome: { success: false, http_status: 400 } } }],
    ['a list of what is refused', { 'h.json': { secret: SECRET, rejection_vectors: [HMAC] } }],
    [
      'a code of a URL',
      { 'u.json': { cases: [{ name: 'n', input_url: 'x', reject: true, expected_error: 'webhook_x' }] } },
    ],
  ])('is compared: %s', async (_, files) => {
    const result = only(await runFolder(files));
    expect(result).toMatchObject({ passed: false });
    expect(result.kind).not.toBe('unreadable');
  });
});

describe('a clock of 0', () => {
  test.each([0, 1, -100])('%j', async (now) => {
    const signed = await signedAt(now);
    const nonce = /nonce="([^"]*)"/.exec(signed.headers['Signature-Input'] ?? '')?.[1];
    const at = { ...vector, reference_now: now, request: signed };
    const state = (name: string, test_harness_state: object, error_code: string) => ({
      ...at,
      name,
      test_harness_state,
      expected_outcome: { success: false, error_code },
    });
    const [first, again] = [await signedAt(now, envelope), await signedAt(now, envelope)];
    const steps = [
      { request: first, expected: { status: 200, kind: 'accepted' } },
      { request: again, expected: { status: 200, kind: 'duplicate' } },
      { request: first, expected: { status: 401, code: 'webhook_signature_replayed' } },
      { at: 361, request: again, expected: { status: 401, code: 'webhook_signature_window_invalid' } },
    ];
    const { results } = await runFolder({
      'a.json': at,
      'b.json': state(
        'replayed',
        { replay_cache_entries: [{ keyid: 'k1', nonce }] },
        'webhook_signature_replayed',
      ),
      'c.json': state('revoked', { revoked_kids: ['k1'] }, 'webhook_signature_key_revoked'),
      'd.json': state('stale', { revocation_list_stale_seconds: 60 }, 'webhook_signature_revocation_stale'),
      'e.json': state('full', { per_keyid_cap_filled_for: 'k1' }, 'webhook_signature_rate_abuse'),
      'f.json': { sequences: [{ name: 's', reference_now: now, steps }] },
      ...(now >= 0 && {
        'g.json': {
          secret: SECRET,
          vectors: [
            { ...HMAC, timestamp: now, expected_signature: mac(now), expected_verifier_action: 'accept' },
          ],
        },
      }),
    });
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    expect(results).toHaveLength(now >= 0 ? 7 : 6);
  });
});
