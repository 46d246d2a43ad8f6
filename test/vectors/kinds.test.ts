import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  formatReport,
  librarySubject,
  runVectors,
  type RunVectorsOptions,
  type Skipped,
  type VectorResult,
} from '../../src/vectors/index.ts';
import { folderOf } from './folder.ts';

/* Files of the kinds that the protocol publishes: told by their members, judged by what callers and receivers run. */

interface Run {
  readonly results: readonly VectorResult[];
  readonly skipped: readonly Skipped[];
  readonly text: string;
}

async function run(file: unknown, options: Omit<RunVectorsOptions, 'dir'> = {}): Promise<Run> {
  const dir = folderOf({ 'published.json': file });
  const skipped: Skipped[] = [];
  const results = await runVectors({ dir, onSkipped: (one) => skipped.push(one), ...options });
  return { results, skipped, text: formatReport(results, { skipped }) };
}

const file = (...vectors: readonly object[]): object => ({ version: 1, description: 'invented', vectors });

/** Those that failed, as text. */
const failures = ({ results }: Run): readonly string[] =>
  results
    .filter(({ passed }) => !passed)
    .map(({ name, expected, actual }) => `${name}: ${expected} | ${actual}`);

/** Each vector passes as it is; with the expectation of another it fails. */
async function decides(vectors: readonly object[], wrong: object): Promise<void> {
  expect(failures(await run(file(...vectors)))).toEqual([]);
  const spoilt = await run(file(...vectors.map((vector) => ({ ...vector, ...wrong }))));
  expect(spoilt.results.filter(({ passed }) => passed).map(({ name }) => name)).toEqual([]);
  expect(spoilt.results).toHaveLength(vectors.length);
}

const OTHER = { expected_data: { of: 'another vector' } };
const part = (data: unknown): object => ({ kind: 'data', data });

describe('answers', () => {
  const task = (state: string, artifacts: readonly object[], message: readonly object[] = []): object => ({
    id: 'task-1',
    status: { state, ...(message.length > 0 && { message: { parts: message } }) },
    artifacts: artifacts.map((data) => ({ parts: [{ kind: 'text', text: 'done' }, ...[data].flat()] })),
  });
  const agent = (id: string, path: string, response: unknown, data: unknown): object => ({
    id,
    description: id,
    status: 'completed',
    path,
    response,
    expected_data: data,
  });

  test('of the agent transport', () =>
    decides(
      [
        agent('bare', 'artifact', task('completed', [part({ n: 1 })]), { n: 1 }),
        agent('last part', 'artifact', task('completed', [[part({ n: 1 }), part({ n: 2 })]] as object[]), {
          n: 2,
        }),
        agent('wrapped', 'artifact', { task: task('TASK_STATE_COMPLETED', [part({ n: 1 })]) }, { n: 1 }),
        agent('by its message', 'status_message', task('failed', [], [part({ n: 3 }), part({ n: 4 })]), {
          n: 3,
        }),
        agent('interim', 'status_message', task('TASK_STATE_INPUT_REQUIRED', [], [part({ ask: 'x' })]), {
          ask: 'x',
        }),
        agent('interim, not by artifact', 'none', task('working', [part({ n: 1 })]), null),
        agent(
          'status alone',
          'status_message',
          { statusUpdate: task('TASK_STATE_WORKING', [], [part({ percentage: 5 })]) },
          { percentage: 5 },
        ),
        agent('unknown state', 'none', task('dreaming', [part({ n: 1 })]), null),
        agent('no state', 'none', { id: 't', artifacts: [{ parts: [part({ n: 1 })] }] }, null),
        agent('list', 'none', task('completed', [part([1, 2])]), null),
        agent('later artifact alone', 'none', task('completed', [[], part({ n: 1 })] as object[]), null),
        agent('message', 'none', { message: { messageId: 'm', parts: [part({ n: 1 })] } }, null),
        agent('wrapped twice', 'none', { task: { task: task('completed', [part({ n: 1 })]) } }, null),
        agent(
          'two wrappers',
          'none',
          { task: task('completed', [part({ n: 1 })]), message: { parts: [] } },
          null,
        ),
      ],
      OTHER,
    ));

  test('a data part that is only a wrapper is an error', async () => {
    const wrapper = {
      ...agent('wrapper', 'artifact', task('completed', [part({ response: { n: 1 } })]), null),
      expected_error_type: 'wrapper_detected',
    };
    expect(failures(await run(file(wrapper)))).toEqual([]);
    expect(failures(await run(file({ ...wrapper, expected_error_type: null })))).toEqual([
      'wrapper: data null, error none | data null, error wrapper_detected',
    ]);
  });

  const tool = (id: string, path: string, response: unknown, data: unknown): object => ({
    id,
    path,
    response,
    expected_data: data,
  });
  const text = (value: unknown): object => ({
    type: 'text',
    text: typeof value === 'string' ? value : JSON.stringify(value),
  });
  const error = { adcp_error: { code: 'CONFLICT', message: 'no' } };

  test('of the tool transport', () =>
    decides(
      [
        tool(
          'structured',
          'structuredContent',
          { structuredContent: { n: 1 }, content: [text({ n: 2 })] },
          { n: 1 },
        ),
        tool('text', 'text_fallback', { content: [text('hello'), text({ n: 2 })] }, { n: 2 }),
        tool('text behind an error', 'text_fallback', { content: [text(error), text({ n: 2 })] }, { n: 2 }),
        tool(
          'text behind one too long',
          'text_fallback',
          { content: [text({ pad: 'x'.repeat(1_100_000) }), text({ n: 2 })] },
          { n: 2 },
        ),
        tool('failed', 'structuredContent', { isError: true, structuredContent: { n: 1 } }, null),
        tool('error alone', 'structuredContent', { structuredContent: error }, null),
        tool('error alone in a text', 'text_fallback', { content: [text(error)] }, null),
        tool('no object', 'text_fallback', { content: [text('hello'), text([1])] }, null),
        tool('nothing', 'text_fallback', {}, null),
      ],
      OTHER,
    ));

  test('a subject without the function is told', async () => {
    const { answerData: _without, ...subject } = librarySubject();
    const dir = folderOf({ 'a.json': file(tool('n', 'structuredContent', {}, null)) });
    await expect(runVectors({ dir, subject })).rejects.toThrow(/no vector can be run/);
  });
});

describe('errors', () => {
  const found = {
    code: 'RATE_LIMITED',
    message: 'slow down',
    recovery: 'transient',
    retry_after: 5,
    suggestion: 'x',
  };
  const vector = (
    id: string,
    transport: string,
    path: string,
    response: unknown,
    error: unknown,
    action: string,
  ): object => ({
    id,
    description: id,
    transport,
    path,
    response,
    expected_error: error,
    expected_action: action,
  });
  const failed = (...members: readonly object[]): object => ({
    isError: true,
    content: [],
    ...Object.assign({}, ...members),
  });
  const inTask = (state: string, artifact: readonly object[], message: readonly object[] = []): object => ({
    id: 't',
    status: { state, message: { parts: message } },
    artifacts: artifact.length > 0 ? [{ parts: artifact }] : [],
  });
  const rpc = (code: number, data?: object): object => ({
    jsonrpc: '2.0',
    id: 1,
    error: { code, message: 'm', data },
  });
  const adcp = (code: string, more: object = {}): { adcp_error: object } => ({
    adcp_error: { code, message: 'm', ...more },
  });

  const VECTORS = [
    vector(
      'structured',
      'mcp',
      'structuredContent',
      failed({ structuredContent: { adcp_error: found } }),
      found,
      'retry',
    ),
    vector(
      'text',
      'mcp',
      'text_fallback',
      failed({ content: [{ type: 'text', text: JSON.stringify(adcp('BUDGET_TOO_LOW')) }] }),
      { code: 'BUDGET_TOO_LOW' },
      'surface_to_caller',
    ),
    vector(
      'terminal',
      'mcp',
      'structuredContent',
      failed({ structuredContent: adcp('ACCOUNT_SUSPENDED') }),
      { code: 'ACCOUNT_SUSPENDED' },
      'escalate_to_human',
    ),
    vector(
      'unknown code',
      'mcp',
      'structuredContent',
      failed({ structuredContent: adcp('MADE_UP') }),
      { code: 'MADE_UP' },
      'escalate_to_human',
    ),
    vector(
      'own recovery',
      'mcp',
      'structuredContent',
      failed({ structuredContent: adcp('MADE_UP', { recovery: 'transient' }) }),
      { code: 'MADE_UP', recovery: 'transient' },
      'retry',
    ),
    vector(
      'JSON-RPC',
      'mcp',
      'jsonrpc_error',
      rpc(-32_029, adcp('RATE_LIMITED', { retry_after: 0.4 })),
      { code: 'RATE_LIMITED', retry_after: 1 },
      'retry',
    ),
    vector(
      'JSON-RPC alone',
      'a2a',
      'jsonrpc_error',
      { code: -32_000, message: 'm', data: adcp('CONFLICT') },
      { code: 'CONFLICT' },
      'retry',
    ),
    vector(
      'artifact',
      'a2a',
      'artifact',
      inTask('failed', [part(adcp('POLICY_VIOLATION', { field: 'a.b' }))]),
      { code: 'POLICY_VIOLATION', field: 'a.b' },
      'surface_to_caller',
    ),
    vector(
      'completed',
      'a2a',
      'artifact',
      inTask('TASK_STATE_COMPLETED', [part(adcp('CONFLICT'))]),
      { code: 'CONFLICT' },
      'retry',
    ),
    vector(
      'message',
      'a2a',
      'status_message',
      inTask('failed', [], [part(adcp('CONFLICT'))]),
      { code: 'CONFLICT' },
      'retry',
    ),
    vector(
      'artifact before message',
      'a2a',
      'artifact',
      { task: inTask('rejected', [part(adcp('CONFLICT')), part({ n: 1 })], [part(adcp('AUTH_INVALID'))]) },
      { code: 'CONFLICT' },
      'retry',
    ),
    vector(
      'message beside data',
      'a2a',
      'status_message',
      inTask('failed', [part({ n: 1 })], [part(adcp('CONFLICT'))]),
      { code: 'CONFLICT' },
      'retry',
    ),
  ];
  const NONE = [
    vector('JSON-RPC without data', 'mcp', 'jsonrpc_error', rpc(-32_029), null, 'generic_error'),
    vector(
      'text without JSON',
      'mcp',
      'text_fallback',
      failed({ content: [{ type: 'text', text: 'it broke' }] }),
      null,
      'generic_error',
    ),
    vector(
      'not failed',
      'mcp',
      'structuredContent',
      { structuredContent: adcp('CONFLICT') },
      null,
      'generic_error',
    ),
    vector(
      'code is a number',
      'mcp',
      'structuredContent',
      failed({ structuredContent: { adcp_error: { code: 7, message: 'm' } } }),
      null,
      'generic_error',
    ),
    vector('no error', 'a2a', 'artifact', inTask('completed', [part({ n: 1 })]), null, 'generic_error'),
  ];

  test.each([
    ['error', { expected_error: { code: 'OF_ANOTHER' } }],
    ['none', { expected_error: null }],
    ['action', { expected_action: 'generic_error' }],
  ])('are found, and say what is to be done; wrong: %s', (_, wrong) => decides(VECTORS, wrong));

  test.each([
    ['error', { expected_error: { code: 'OF_ANOTHER' } }],
    ['action', { expected_action: 'retry' }],
  ])('are not found where there is none; wrong: %s', (_, wrong) => decides(NONE, wrong));

  test.each([
    ['message', { message: 'other words' }],
    ['recovery', { recovery: 'terminal' }],
    ['retry_after', { retry_after: 6 }],
  ])('are compared member by member: %s', async (name, wrong) => {
    const [first] = VECTORS;
    const { results } = await run(file({ ...first, expected_error: { ...found, ...wrong } }));
    expect(results).toMatchObject([
      { passed: false, detail: expect.stringMatching(new RegExp(`^${name}: `)) },
    ]);
  });
});

describe('redirects of discovery', () => {
  const origin = 'https://pub.fern.example/.well-known/adagents.json';
  const vector = (
    id: string,
    chain: readonly (readonly [number, string])[],
    expected: object,
    target = 'well_known',
  ): object => ({
    id,
    target,
    origin_url: origin,
    redirect_chain: chain.map(([status, location]) => ({ status, location })),
    expected,
  });
  const resolved = (final_url: string): object => ({ result: 'resolved', final_url });
  const refused = (reason: string): object => ({ result: 'refused', reason });
  const at = (host: string): string => `https://${host}/adagents.json`;

  test('followed within the domain', () =>
    decides(
      [
        vector('none', [], resolved(origin)),
        vector('one', [[301, at('www.fern.example')]], resolved(at('www.fern.example'))),
        vector('relative', [[308, '/moved.json']], resolved('https://pub.fern.example/moved.json')),
        vector(
          'three',
          [
            [302, at('a.fern.example')],
            [303, at('b.fern.example')],
            [307, at('fern.example')],
          ],
          resolved(at('fern.example')),
        ),
        vector('none of a pointer', [], resolved(origin), 'authoritative_location'),
      ],
      { expected: refused('too_many_redirects') },
    ));

  test('refused', () =>
    decides(
      [
        vector('other domain', [[302, at('moss.example')]], refused('cross_registrable_domain')),
        vector('http', [[302, 'http://www.fern.example/adagents.json']], refused('scheme_downgrade')),
        vector(
          'four',
          [1, 2, 3, 4].map((n) => [302, at(`h${n}.fern.example`)] as const),
          refused('too_many_redirects'),
        ),
        vector(
          'of a pointer',
          [[302, at('www.fern.example')]],
          refused('redirect_on_authoritative_location'),
          'authoritative_location',
        ),
      ],
      { expected: { result: 'resolved' } },
    ));

  test('where it leads is compared', async () => {
    const elsewhere = vector('one', [[301, at('www.fern.example')]], resolved(at('fern.example')));
    expect(failures(await run(file(elsewhere)))).toEqual([
      `one: ${at('fern.example')} | ${at('www.fern.example')}`,
    ]);
  });
});

const SECRET = 'a-secret-of-the-vectors-of-32-chars';
const signed = (id: string, timestamp: number, raw_body: string, more: object = {}): object => ({
  id,
  timestamp,
  raw_body,
  expected_signature: `sha256=${createHmac('sha256', SECRET).update(`${timestamp}.${raw_body}`).digest('hex')}`,
  ...more,
});

describe('HMAC files as published', () => {
  const NOW = 1_800_000_000;
  const [{ expected_signature: signature }] = [signed('s', NOW, '{"a":1}')] as [
    { expected_signature: string },
  ];

  test('a double name, clocks, secrets; what is of signers is not judged', async () => {
    const hmac = {
      secret: SECRET,
      vectors: [
        signed('plain', NOW, '{"a":1}'),
        signed('twice', NOW, '{"a":1,"a":2}', {
          expected_verifier_action: 'reject-malformed',
          rfc9421_error_code: 'webhook_body_malformed',
        }),
      ],
      rejection_vectors: [
        {
          id: 'old',
          timestamp: NOW,
          raw_body: '{"a":1}',
          signature,
          reason: 'stale',
          current_time: NOW + 301,
        },
        { id: 'wrong', timestamp: NOW, raw_body: '{"a":2}', signature, reason: 'tampered' },
      ],
      secret_rejection_vectors: [
        { id: 'short', secret: 'too-short', reason: 'length' },
        { id: 'shapeless', form: 'not known' },
      ],
      signer_side: [{ id: 'sign', input: {} }],
    };
    const ran = await run(hmac);
    expect(failures(ran)).toEqual([]);
    expect(ran.results.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'hmac plain',
      'hmac twice',
      'hmac old',
      'hmac wrong',
      'secret short',
    ]);
    expect(ran.skipped.map(({ what, name }) => `${what} ${name}`)).toEqual([
      'vector shapeless',
      'vector sign',
    ]);
    expect(ran.text).toMatch(
      /\nnot judged: 1 vector: secret_rejection_vectors: .*\n.*\n5 passed, 0 failed, 2 not judged$/,
    );
  });

  test('a clock in time, and a secret that is none too short, fail', async () => {
    const ran = await run({
      secret: SECRET,
      vectors: [signed('plain', NOW, '{}')],
      rejection_vectors: [
        { id: 'fresh', timestamp: NOW, raw_body: '{"a":1}', signature, current_time: NOW + 1 },
      ],
      secret_rejection_vectors: [{ id: 'long', secret: SECRET }],
    });
    expect(ran.results.filter(({ passed }) => !passed).map(({ name }) => name)).toEqual(['fresh', 'long']);
  });
});

describe('envelopes as published', () => {
  const payload = {
    idempotency_key: 'key-of-an-event-0001',
    operation_id: 'op',
    task_id: 't',
    task_type: 'create_media_buy',
    status: 'completed',
    timestamp: '2027-01-15T08:00:00Z',
    result: { media_buy_id: 'm' },
  };

  test('the same event again', async () => {
    const positive = [
      { id: 'first', payload },
      {
        id: 'again',
        payload: Object.fromEntries(Object.entries(payload).toReversed()),
        same_event_as: 'first',
      },
    ];
    expect(failures(await run({ positive, negative: [] }))).toEqual([]);
  });

  test('another event in its name', async () => {
    const other = { ...payload, idempotency_key: 'key-of-an-event-0002' };
    const ran = await run({
      positive: [
        { id: 'first', payload },
        { id: 'other', payload: other, same_event_as: 'first' },
        { id: 'lost', payload, same_event_as: 'nobody' },
      ],
    });
    expect(ran.results.map(({ name, passed, kind }) => ({ name, passed, kind }))).toEqual([
      { name: 'first', passed: true, kind: 'envelope' },
      { name: 'other', passed: false, kind: 'envelope' },
      { name: 'lost', passed: false, kind: 'unreadable' },
    ]);
    expect(ran.results[2]?.actual).toMatch(/published\.json: lost: same_event_as is missing or wrong/);
  });

  test.each([
    ['a bare result', { media_buy_id: 'm', packages: [] }, 'missing_envelope_fields'],
    ['no key', { ...payload, idempotency_key: undefined }, 'missing_idempotency_key'],
    ["a media buy's status", { ...payload, status: 'active' }, 'invalid_envelope_status'],
  ])('%s', async (id, body, expected_error) => {
    expect(failures(await run({ negative: [{ id, payload: body, expected_error }] }))).toEqual([]);
  });
});

describe('comments and codes', () => {
  test('URLs of signed requests: their codes, and why', async () => {
    const cases = [
      {
        name: 'good',
        rule: 'case',
        input_url: 'HTTPS://F.example',
        expected_target_uri: 'https://f.example/',
      },
      {
        name: 'bad',
        input_url: 'https://me@/x',
        reject: true,
        reject_reason: 'no host',
        expected_error_code: 'request_target_uri_malformed',
      },
    ];
    const ran = await run({ cases });
    expect(failures(ran)).toEqual([]);
    expect(ran.skipped).toEqual([]);
    const other = cases.map((one) => ({
      ...one,
      ...(one.reject && { expected_error_code: 'request_other' }),
    }));
    expect((await run({ cases: other })).results.map(({ passed }) => passed)).toEqual([true, false]);
  });

  test('a signed request is not judged', async () => {
    const request = { method: 'POST', url: 'https://f.example/', headers: {}, body: '{}' };
    const of = (name: string, tag: string, expected_outcome: object): object => ({
      name,
      reference_now: 1_800_000_000,
      request: {
        ...request,
        headers: { 'Signature-Input': `sig1=("@method");tag="${tag}"`, Signature: 'sig1=:AA:' },
      },
      jwks_ref: [],
      expected_outcome,
    });
    const refused = (error_code: string): object => ({ success: false, error_code });
    const ran = await run([
      of('request refused', 'adcp/request-signing/v1', refused('request_signature_key_unknown')),
      of('request taken', 'adcp/request-signing/v1', { success: true }),
      of('webhook refused', 'adcp/request-signing/v1', {
        success: false,
        error_code: 'webhook_signature_tag_invalid',
      }),
    ]);
    expect(ran.results.map(({ name }) => name)).toEqual(['webhook refused']);
    expect(ran.skipped.map(({ name, why }) => `${name}: ${why}`)).toEqual([
      expect.stringMatching(/^request refused: it is about a signed request/),
      expect.stringMatching(/^request taken: it is about a signed request/),
    ]);
  });

  test('a file of no known kind is not judged, and alone it is an error', async () => {
    const strange = file({ id: 'x', colour: 'blue' });
    const dir = folderOf({
      'strange.json': strange,
      'a.json': file({ id: 'n', path: 'structuredContent', response: {}, expected_data: null }),
    });
    const skipped: Skipped[] = [];
    const results = await runVectors({ dir, onSkipped: (one) => skipped.push(one) });
    expect(results.map(({ passed }) => passed)).toEqual([true]);
    expect(skipped).toMatchObject([
      { what: 'file', name: 'strange', why: 'no known kind of vectors: vectors has members id, colour' },
    ]);
    await expect(run(strange)).rejects.toMatchObject({
      code: 'vector_error',
      message: expect.stringMatching(/published\.json: nothing in it can be judged/),
    });
  });

  test.each([
    ['path', { response: {}, path: 'elsewhere', expected_data: null }, /path is missing or wrong/],
    ['response', { path: 'artifact', expected_data: null }, /response is missing or wrong/],
    ['expected_data', { path: 'artifact', response: {} }, /expected_data is missing or wrong/],
  ])('a wrong shape names the place: %s', async (_, wrong, message) => {
    const good = { id: 'good', path: 'structuredContent', response: {}, expected_data: null };
    const { results } = await run(file(good, { id: 'wrong', ...wrong }));
    expect(results).toMatchObject([
      { passed: true },
      { kind: 'unreadable', passed: false, actual: expect.stringMatching(message) },
    ]);
    expect(results[1]?.actual).toMatch(/published\.json: wrong: /);
  });

  test.each([
    ['transport', { transport: 'smoke' }, /transport is missing or wrong/],
    ['action', { expected_action: 'panic' }, /expected_action is missing or wrong: expected one of retry/],
    ['error', { expected_error: 'CONFLICT' }, /expected_error is missing or wrong: expected an object/],
  ])('of errors too: %s', async (_, wrong, message) => {
    const good = {
      id: 'n',
      transport: 'mcp',
      response: {},
      expected_error: null,
      expected_action: 'generic_error',
    };
    const { results } = await run(file({ ...good, ...wrong }));
    expect(results).toMatchObject([{ kind: 'unreadable', actual: expect.stringMatching(message) }]);
  });

  test('members that are not known are passed over and named', async () => {
    const ran = await run(
      file({
        id: 'n',
        path: 'structuredContent',
        response: {},
        expected_data: null,
        expected_colour: 'blue',
      }),
    );
    expect(failures(ran)).toEqual([]);
    expect(ran.text).toMatch(/\nignored: 1 member expected_colour: not known\n1 passed, 0 failed$/);
  });
});
