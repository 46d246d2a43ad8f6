import { getEventListeners } from 'node:events';
import nodeDns from 'node:dns';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod/mini';
import { ConfigError } from '../../src/index.ts';
import { createRegistry, RegistryError, type RegistryOptions } from '../../src/registry/index.ts';
import { listening } from '../adapters/raw-client.ts';
import { type RegistryServer, startRegistry } from './server.ts';

const AGENT = 'https://seller.example/mcp?a=b%20c';
const ENCODED = 'https%3A%2F%2Fseller.example%2Fmcp%3Fa%3Db%2520c';

let server: RegistryServer;
beforeAll(async () => {
  server = await startRegistry();
});
afterAll(async () => {
  await server.stop();
});

const registryAt = (fault: string, more: Partial<RegistryOptions> = {}) =>
  createRegistry({ baseUrl: server.at(fault), allowLoopback: true, ...more });

/** The error that a call fails with. */
async function failure(call: Promise<unknown>): Promise<RegistryError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof RegistryError) return error;
  throw new Error(`expected a RegistryError, got ${String(error)}`);
}

/** A clock that stands still, and waits that are only written down. */
function patience() {
  const waits: number[] = [];
  const sleep = async (ms: number): Promise<void> => void waits.push(ms);
  return { waits, options: { sleep, random: () => 0, now: () => Date.UTC(2026, 0, 1) } };
}

describe('contract: GET …/badge/{role}/{version}/embed', () => {
  it('gives the badge as sent, unknown members too, and sends no token', async () => {
    const registry = registryAt('registry', { token: 'sk_live_1' });
    const badge = await registry.badge(AGENT, 'sales', '3.0');
    expect(badge.proto_version).toBe('3.0');
    expect(badge['added_later']).toEqual({ kept: [1] });
    const [request] = await server.seen('registry');
    expect(request?.url).toBe(`/registry/api/registry/agents/${ENCODED}/badge/sales/3.0/embed`);
    expect(request?.headers).not.toHaveProperty('authorization');
    expect(request?.headers['accept-encoding']).toBe('identity');
  });

  it('asks the legacy unpinned endpoint without a version', async () => {
    await registryAt('registry').badge(AGENT, 'sales & more');
    const last = (await server.seen('registry')).at(-1);
    expect(last?.url).toBe(`/registry/api/registry/agents/${ENCODED}/badge/sales%20%26%20more/embed`);
  });

  it('has members of either name of the protocol, in the types too', async () => {
    const badge = await registryAt('registry').badge(AGENT, 'sales', '3.0');
    const both: readonly (string | null | undefined)[] = [badge.proto_version, badge.adcp_version];
    expect(both).toEqual(['3.0', '3.0']);
    const error = await failure(registryAt('number-version').badge(AGENT, 'sales', '3.0'));
    expect(error.message).toContain('adcp_version');
  });

  it('types members by the one name that is given', async () => {
    const registry = createRegistry({
      baseUrl: server.at('registry'),
      allowLoopback: true,
      protocol: 'adcp',
    });
    const badge = await registry.badge(AGENT, 'sales', '3.0');
    expect(badge.adcp_version satisfies string | null | undefined).toBe('3.0');
  });

  it.each([
    ['no-html', 'html'],
    ['http-svg', 'badge_svg_url'],
    ['svg-script', 'badge_svg_url'],
    ['svg-markup', 'badge_svg_url'],
    ['text-verified', 'verified'],
  ])('%s: an answer that does not fit names the member', async (fault, member) => {
    const error = await failure(registryAt(fault).badge(AGENT, 'sales', '3.0'));
    expect(error).toMatchObject({ code: 'invalid_answer', status: 200 });
    expect(error.message).toContain(member);
  });

  it.each([
    ['an encoded agent URL', ENCODED, 'sales', '3.0'],
    ['no URL', 'seller.example', 'sales', '3.0'],
    ['a lone surrogate', 'https://seller.example/\ud800', 'sales', '3.0'],
    ['an empty role', AGENT, '', '3.0'],
    ['a role of dots', AGENT, '..', '3.0'],
    ['a patch release', AGENT, 'sales', '3.0.1'],
    ['a leading zero', AGENT, 'sales', '03.0'],
    ['a prefix', AGENT, 'sales', 'v3.0'],
    ['an empty version', AGENT, 'sales', ''],
    ['a line end', AGENT, 'sales', '3.0\n'],
  ])('refuses %s before the call', async (_, agentUrl, role, version) => {
    const before = (await server.seen('registry')).length;
    const error = await failure(registryAt('registry').badge(agentUrl, role, version));
    expect(error).toMatchObject({ code: 'bad_request', status: undefined });
    expect(await server.seen('registry')).toHaveLength(before);
  });
});

describe('contract: GET …/compliance/diagnostics', () => {
  it('gives rows as sent; run and cap of rows are in the query, the token in the header', async () => {
    const registry = registryAt('registry', { token: 'sk_live_1' });
    const { count, diagnostics } = await registry.diagnostics(AGENT, { runId: 'run 1&2', maxRows: 2 });
    expect(count).toBe(2);
    expect(diagnostics[0]?.request_jsonb).toEqual({ secret_account: 'acme', nested: [null, 1.5] });
    expect(diagnostics[0]?.proto_error_jsonb).toEqual({ code: 'X' });
    expect(diagnostics[1]).toEqual({ id: 8 });
    const last = (await server.seen('registry')).at(-1);
    expect(last?.url).toBe(
      `/registry/api/registry/agents/${ENCODED}/compliance/diagnostics?run_id=run+1%262&limit=2`,
    );
    expect(last?.headers['authorization']).toBe('Bearer sk_live_1');
  });

  it('asks for 500 rows of the latest run, by the name that the owner gives the parameter', async () => {
    await registryAt('registry', { token: 'sk_1', rowCapParameter: 'max_rows' }).diagnostics(AGENT);
    expect((await server.seen('registry')).at(-1)?.url).toMatch(/\/diagnostics\?max_rows=500$/);
  });

  it.each([0, 1001, 1.5, Number.NaN])('refuses %d rows before the call', async (maxRows) => {
    const error = await failure(registryAt('registry', { token: 'sk_1' }).diagnostics(AGENT, { maxRows }));
    expect(error).toMatchObject({ code: 'bad_request', status: undefined });
  });

  it('refuses a misspelt option', async () => {
    const error = await failure(
      registryAt('registry', { token: 'sk_1' }).diagnostics(AGENT, { run_id: 'x' } as object),
    );
    expect(error.message).toContain('run_id');
  });

  it.each(['', null, 7, {}])('refuses the run %j before the call', async (runId) => {
    const query = { runId } as object;
    const error = await failure(registryAt('registry', { token: 'sk_1' }).diagnostics(AGENT, query));
    expect(error).toMatchObject({ code: 'bad_request', status: undefined });
    expect(error.message).toContain('runId');
  });

  it('reports a missing token without sending anything', async () => {
    const before = (await server.seen('registry')).length;
    const error = await failure(registryAt('registry').diagnostics(AGENT));
    expect(error).toMatchObject({ code: 'unauthorized', status: undefined });
    expect(await server.seen('registry')).toHaveLength(before);
  });

  it.each([
    ['text-count', 'count'],
    ['bad-row', 'diagnostics.1.id'],
    ['part-of-ms', 'diagnostics.0.duration_ms'],
  ])('%s: names the member', async (fault, member) => {
    const error = await failure(registryAt(fault, { token: 'sk_1' }).diagnostics(AGENT));
    expect(error).toMatchObject({ code: 'invalid_answer' });
    expect(error.message).toContain(member);
  });
});

describe('the other endpoints', () => {
  it('posts its body once, with the token', async () => {
    const registry = registryAt('registry', { token: 'sk_1' });
    expect(await registry.registerAgent({ url: AGENT, note: 'ü' })).toEqual({ created: true });
    expect(await registry.createOrganization({ name: 'Acme' })).toBeUndefined();
    const [agent, organization] = (await server.seen('registry')).slice(-2);
    expect(agent).toMatchObject({ method: 'POST', url: '/registry/api/me/agents' });
    expect(JSON.parse(agent?.body ?? '')).toEqual({ url: AGENT, note: 'ü' });
    expect(agent?.headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer sk_1',
    });
    expect(organization?.url).toBe('/registry/api/organizations');
  });

  it('gives both well-known documents without a token', async () => {
    const registry = registryAt('registry', { token: 'sk_1' });
    expect(await registry.authorizationServer()).toMatchObject({
      path: '/.well-known/oauth-authorization-server',
    });
    expect(await registry.protectedResource()).toMatchObject({
      path: '/.well-known/oauth-protected-resource/api',
    });
    for (const { headers } of (await server.seen('registry')).slice(-2))
      expect(headers).not.toHaveProperty('authorization');
  });

  it('calls any other endpoint, and returns the schema’s output', async () => {
    const registry = registryAt('registry');
    const query = { a: ['1', 2], b: undefined, c: true };
    expect(await registry.request('GET', '/api/list', { query })).toEqual([1, 'two', null]);
    expect((await server.seen('registry')).at(-1)?.url).toBe('/registry/api/list?a=1&a=2&c=true');
    const schema = z.pipe(
      z.array(z.unknown()),
      z.transform((list) => list.length),
    );
    expect((await registry.request('GET', '/api/list', { schema })) satisfies number).toBe(3);
  });

  it('names the member that does not fit a schema, and none of its values', async () => {
    const schema = z.tuple([z.number(), z.number()], z.unknown());
    const error = await failure(registryAt('registry').request('GET', '/api/list', { schema }));
    expect(error).toMatchObject({ code: 'invalid_answer' });
    expect(error.message).toContain('1');
    expect(error.message).not.toContain('two');
  });

  it('reports that a schema threw, and keeps the status: a POST was done', async () => {
    const thrown = new Error('no table of currencies');
    const validate = (): never => {
      throw thrown;
    };
    const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } };
    const call = registryAt('registry').request('POST', '/api/me/agents', { body: {}, schema });
    expect(await failure(call)).toMatchObject({ code: 'invalid_answer', status: 201, cause: thrown });
  });

  it.each([
    ['no slash', 'api/x'],
    ['a way out of the base URL', '/../x'],
    ['an encoded way out', '/%2e%2e/x'],
    ['a backslash', '/\\other.example/x'],
    ['user information', '@other.example/x'],
    ['a fragment', '/x#y'],
    ['white space', '/x y'],
    ['a line end', '/x\r\ny: z'],
  ])('refuses a path with %s', async (_, path) => {
    const error = await failure(registryAt('registry', { token: 'sk_1' }).request('GET', path));
    expect(error).toMatchObject({ code: 'bad_request', status: undefined });
  });

  it('accepts two slashes in a path of the registry', async () => {
    await failure(registryAt('registry', { token: 'sk_1' }).request('GET', '//other.example/x'));
    expect((await server.seen('registry')).at(-1)).toMatchObject({ url: '/registry//other.example/x' });
  });

  it('refuses a body of a GET, one that is not JSON, and a method that it does not know', async () => {
    const registry = registryAt('registry');
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    expect((await failure(registry.request('GET', '/x', { body: {} }))).code).toBe('bad_request');
    expect((await failure(registry.request('POST', '/x', { body: circular }))).code).toBe('bad_request');
    expect((await failure(registry.request('POST', '/x', { body: () => 1 }))).code).toBe('bad_request');
    expect((await failure(registry.request('TRACE' as 'GET', '/x'))).code).toBe('bad_request');
  });
});

describe('arguments of the wrong type are a RegistryError, and nothing is sent', () => {
  const registry = () => registryAt('wrong-types', { token: 'sk_1' });
  const signal = { aborted: false };
  it.each<[string, () => Promise<unknown>, string]>([
    ['options null', () => registry().badge(AGENT, 'sales', '3.0', null as never), 'options'],
    ['options text', () => registry().diagnostics(AGENT, 'latest' as never), 'options'],
    ['options an array', () => registry().request('GET', '/x', [] as never), 'options'],
    ['a misspelt option', () => registry().badge(AGENT, 'sales', '3.0', { singal: 1 } as never), 'singal'],
    ['a signal that is none', () => registry().protectedResource({ signal } as never), 'signal'],
    ['no body', () => registry().registerAgent(undefined as never), 'body'],
    ['a body of text', () => registry().createOrganization('{}' as never), 'body'],
    ['a schema that is none', () => registry().request('POST', '/x', { schema: {} as never }), 'schema'],
    ['a schema null', () => registry().request('POST', '/x', { schema: null as never }), 'schema'],
    ['a query null', () => registry().request('GET', '/x', { query: null as never }), 'query'],
    ['a value null', () => registry().request('GET', '/x', { query: { a: null as never } }), 'query: a'],
    ['a list of methods', () => registry().request(['GET'] as never, '/x'), 'method'],
  ])('%s', async (_, call, words) => {
    const error = await failure(call());
    expect(error).toMatchObject({ code: 'bad_request', status: undefined });
    expect(error.message).toContain(words);
    expect((await server.seen('wrong-types')).filter(({ origin }) => origin === 'registry')).toEqual([]);
  });
});

describe('errors', () => {
  it.each([
    ['400', 'bad_request', 400, 'Invalid agent URL, role, or version'],
    ['409', 'bad_request', 409, 'There is one'],
    ['403', 'forbidden', 403, 'Owner only'],
    ['500', 'server', 500, 'server error'],
    ['502', 'server', 502, 'answered 502'],
    ['nothing', 'not_found', 404, 'no fault nothing'],
    ['redirect', 'invalid_answer', 307, 'redirect'],
    ['html', 'invalid_answer', 200, 'not JSON'],
    ['twice', 'invalid_answer', 200, 'name twice'],
    ['empty', 'invalid_answer', 200, 'breaks the contract'],
    ['array', 'invalid_answer', 200, 'breaks the contract'],
    ['gzip', 'invalid_answer', 200, 'encoding that was not requested'],
    ['cut', 'unreachable', undefined, 'closed'],
  ])('%s: %s', async (fault, code, status, words) => {
    const error = await failure(registryAt(fault).badge(AGENT, 'sales', '3.0'));
    expect(error).toMatchObject({ name: 'RegistryError', code, status });
    expect(error.message).toContain(words);
  });

  it('gives up an answer that goes on without end, at the cap', async () => {
    const error = await failure(registryAt('endless', { maxAnswerBytes: 100_000 }).badge(AGENT, 'sales'));
    expect(error.code).toBe('invalid_answer');
    expect(error.message).toContain('100000 bytes');
  });

  it.each([
    ['values', 'the answer is refused: it has more than 3125 values'],
    ['few', 'breaks the contract'],
    ['deep', 'the answer is refused: it nests deeper than 256 levels'],
  ])('%s: counts values and levels before it parses', async (fault, words) => {
    const error = await failure(registryAt(fault, { maxAnswerBytes: 100_000 }).badge(AGENT, 'sales'));
    expect(error.code).toBe('invalid_answer');
    expect(error.message).toContain(words);
  });

  it.each(['silent', 'drip'])('%s: gives up at the deadline', async (fault) => {
    const error = await failure(registryAt(fault, { deadlineMs: 50 }).badge(AGENT, 'sales'));
    expect(error).toMatchObject({ code: 'unreachable', status: undefined });
    expect(error.message).toContain('within 50 ms');
  });

  it('ends with the caller’s signal, while it waits for an answer and between attempts', async () => {
    const controller = new AbortController();
    const call = failure(registryAt('silent').badge(AGENT, 'sales', '3.0', { signal: controller.signal }));
    await expect.poll(() => server.seen('silent').then((all) => all.length)).toBeGreaterThan(1);
    controller.abort(new Error('enough'));
    expect(await call).toMatchObject({ code: 'unreachable', message: 'the call was aborted' });

    const between = new AbortController();
    const sleep = async (): Promise<void> => {
      between.abort();
      await new Promise(() => undefined);
    };
    const waiting = registryAt('429', { sleep }).badge(AGENT, 'sales', '3.0', { signal: between.signal });
    expect((await failure(waiting)).message).toBe('the call was aborted');
  });

  it('is unreachable when nothing listens', async () => {
    const registry = createRegistry({ baseUrl: 'http://127.0.0.1:9', allowLoopback: true });
    expect((await failure(registry.badge(AGENT, 'sales'))).code).toBe('unreachable');
  });
});

describe('attempts', () => {
  it.each([
    ['once-429', [2000]],
    ['twice-503', [1000, 2000]],
    ['dated-503', [5000]],
  ])('%s: repeats a GET after the time that the answer gives', async (fault, expected) => {
    const { waits, options } = patience();
    await registryAt(fault, options).badge(AGENT, 'sales', '3.0');
    expect(waits).toEqual(expected);
  });

  it('spreads the attempts in time', async () => {
    const { waits, options } = patience();
    await registryAt('once-429', { ...options, random: () => 0.5 }).badge(AGENT, 'spread');
    expect(waits).toEqual([2500]);
  });

  it('gives up after the configured attempts', async () => {
    const { waits, options } = patience();
    const error = await failure(registryAt('429', options).badge(AGENT, 'given-up'));
    expect(error).toMatchObject({ code: 'rate_limited', status: 429, retryAfterMs: 7000 });
    expect(waits).toEqual([7000, 7000]);
  });

  it('does not wait longer than allowed: the error has the time', async () => {
    const { waits, options } = patience();
    const error = await failure(registryAt('503', options).badge(AGENT, 'sales'));
    expect(error).toMatchObject({ code: 'server', status: 503, retryAfterMs: 3_600_000 });
    expect(waits).toEqual([]);
  });

  it('makes all attempts when the answer gives no time, however long its own waits grow', async () => {
    const { waits, options } = patience();
    await failure(registryAt('vague-429', { ...options, attempts: 6, maxWaitMs: 3000 }).badge(AGENT, 'all'));
    expect(waits).toEqual([1000, 2000, 3000, 3000, 3000]);
  });

  it('waits up to the limit, and spreads that too', async () => {
    const { waits, options } = patience();
    const patient = { ...options, random: () => 0.5, attempts: 2, maxWaitMs: 7000 };
    await failure(registryAt('429', patient).badge(AGENT, 'sales'));
    expect(waits).toEqual([7500]);
  });

  it.each([
    ['9999999999', 9_999_999_999_000],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
  ])('Retry-After: %s', async (value, retryAfterMs) => {
    const options = { attempts: 1, ...patience().options };
    const call = registryAt('asks', options).request('GET', '/x', { query: { value } });
    expect(await failure(call)).toMatchObject({ code: 'server', retryAfterMs });
  });

  it('are counted over a token that is renewed between them', async () => {
    const { waits, options } = patience();
    const token = (rejected?: string): string => (rejected === undefined ? 'first' : 'second');
    const error = await failure(registryAt('expiring', { ...options, token }).diagnostics(AGENT));
    expect(error).toMatchObject({ code: 'rate_limited', status: 429 });
    expect(waits).toHaveLength(1);
    const sent = (await server.seen('expiring')).filter(({ origin }) => origin === 'registry');
    expect(sent.map(({ headers }) => headers['authorization'])).toEqual([
      'Bearer first',
      'Bearer first',
      'Bearer second',
    ]);
  });

  it('leave no listener on the caller’s signal', async () => {
    const controller = new AbortController();
    const call = registryAt('vague-429', { attempts: 2, maxWaitMs: 0, random: () => 0 });
    await failure(call.badge(AGENT, 'signal', '3.0', { signal: controller.signal }));
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('never sends a POST again', async () => {
    const { waits, options } = patience();
    const error = await failure(registryAt('429', { ...options, token: 'sk_1' }).registerAgent({}));
    expect(error.code).toBe('rate_limited');
    expect(waits).toEqual([]);
  });
});

describe('tokens', () => {
  it.each([
    ['connections of its own', undefined],
    ['the platform’s fetch', fetch],
  ])('do not follow a redirect, over %s', async (_over, transport) => {
    const before = (await server.seen('redirect')).length;
    const error = await failure(
      registryAt('redirect', { token: 'sk_1', fetch: transport }).diagnostics(AGENT),
    );
    expect(error).toMatchObject({ code: 'invalid_answer', status: 307 });
    const seen = (await server.seen('redirect')).slice(before);
    expect(seen.map(({ origin }) => origin)).toEqual(['registry']);
  });

  it('are in no message, whatever the registry repeats', async () => {
    const token = 'sk_live_very_secret';
    const error = await failure(registryAt('echo', { token }).diagnostics(AGENT));
    expect(error.message).not.toContain(token);
    expect(error.message).toContain('Bearer ***');
    expect(error.message).not.toContain('\u001b');
    expect(error.message.length).toBeLessThan(600);
  });

  it.each([
    ['cut-echo', 'Bearer'],
    ['twice-echo', 'name twice'],
  ])('are not in messages in part either: %s', async (fault, words) => {
    const token = 'sk_live_very_secret_and_longer_than_a_name_is_shown';
    const error = await failure(registryAt(fault, { token }).diagnostics(AGENT));
    expect(error.message).toContain(words);
    expect(error.message).not.toContain('sk_');
  });

  it('of a function are requested at each call, and once more after a 401', async () => {
    const asked: (string | undefined)[] = [];
    const token = async (rejected?: string): Promise<string> => {
      asked.push(rejected);
      return rejected === undefined ? 'first' : 'second';
    };
    const { count } = await registryAt('rotated', { token }).diagnostics(AGENT);
    expect(count).toBe(2);
    expect(asked).toEqual([undefined, 'first']);
  });

  it('that stay refused give the error', async () => {
    const error = await failure(registryAt('rotated', { token: () => 'first' }).registerAgent({}));
    expect(error).toMatchObject({ code: 'unauthorized', status: 401 });
    expect((await server.seen('rotated')).filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  it('of a function that never settles do not block the call', async () => {
    const token = (): Promise<string> => new Promise(() => undefined);
    const late = await failure(registryAt('registry', { token, deadlineMs: 20 }).diagnostics(AGENT));
    expect(late).toMatchObject({ code: 'unauthorized', cause: { message: 'no token within 20 ms' } });

    const controller = new AbortController();
    const { signal } = controller;
    const call = failure(registryAt('registry', { token }).diagnostics(AGENT, { signal }));
    controller.abort(new Error('enough'));
    expect(await call).toMatchObject({ code: 'unreachable', message: 'the call was aborted' });
    expect(await failure(registryAt('registry', { token }).diagnostics(AGENT, { signal }))).toMatchObject({
      code: 'unreachable',
    });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no session'))],
    ['gives nothing', () => undefined as unknown as string],
    ['gives a line end', () => 'a\r\nx-evil: 1'],
  ])('a function that %s sends nothing', async (_, token) => {
    const before = (await server.seen('registry')).length;
    const error = await failure(registryAt('registry', { token }).diagnostics(AGENT));
    expect(error).toMatchObject({ code: 'unauthorized', status: undefined });
    expect(await server.seen('registry')).toHaveLength(before);
  });
});

it.each([
  ['a private network', ['10.1.2.3']],
  ['this machine too', ['203.0.113.7', '127.0.0.1']],
  ['a host of the local link', ['fe80::1']],
])('a name that the system resolves to %s is not connected to', async (_what, addresses) => {
  const { lookup } = nodeDns.promises;
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  Object.assign(nodeDns.promises, { lookup: async () => found });
  onTestFinished(() => void Object.assign(nodeDns.promises, { lookup }));
  const registry = createRegistry({ baseUrl: 'https://registry.example', token: 'sk_live_1', attempts: 1 });
  const error = await failure(registry.badge(AGENT, 'sales'));
  expect(error).toMatchObject({ code: 'unreachable', status: undefined });
  expect(error.message).toMatch(/registry\.example resolves to \S+, which is not public/);
});

describe('configuration mistakes are thrown at construction', () => {
  it.each<[string, unknown]>([
    ['no options', undefined],
    ['null', null],
    ['no baseUrl', {}],
    ['http', { baseUrl: 'http://registry.example' }],
    ['a private address', { baseUrl: 'https://10.0.0.1' }],
    ['user information', { baseUrl: 'https://a:b@registry.example' }],
    ['a query', { baseUrl: 'https://registry.example/?a=b' }],
    [
      'a token over http to another host',
      { baseUrl: 'http://192.168.0.1', allowLoopback: true, token: 'sk_1' },
    ],
    ['Bearer in a token', { baseUrl: 'https://registry.example', token: 'Bearer sk_1' }],
    ['an empty token', { baseUrl: 'https://registry.example', token: '' }],
    ['a protocol that is none', { baseUrl: 'https://registry.example', protocol: 'AdCP' }],
    ['an unknown option', { baseUrl: 'https://registry.example', tokens: 'sk_1' }],
    ['a fetch that is not a function', { baseUrl: 'https://registry.example', fetch: {} }],
    [
      'a wait that is more than a timer holds',
      { baseUrl: 'https://registry.example', maxWaitMs: 2 ** 31 - 1 },
    ],
    ['no attempts', { baseUrl: 'https://registry.example', attempts: 0 }],
  ])('%s', (_, options) => {
    expect(() => createRegistry(options as RegistryOptions)).toThrow(ConfigError);
  });

  it('accepts http to loopback with a token when allowed', () => {
    expect(() =>
      createRegistry({ baseUrl: 'http://localhost:3000', allowLoopback: true, token: 'sk_1' }),
    ).not.toThrow();
  });
});

it('once a transport has rejected its signal fires no more: for Node’s own fetch that can be the end of the process', async () => {
  await using answering = await listening((_req, res) => {
    res.writeHead(200, { 'content-encoding': Array.from({ length: 20 }, () => 'gzip').join() }).end('x');
  });
  const signals: AbortSignal[] = [];
  const transport: RegistryOptions['fetch'] = async (url, init) => {
    signals.push(init.signal);
    return globalThis.fetch(url, init);
  };
  const registry = createRegistry({
    baseUrl: answering.url,
    allowLoopback: true,
    attempts: 1,
    fetch: transport,
  });
  await expect(registry.request('GET', '/api')).rejects.toThrow(/content-encodings/);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});
