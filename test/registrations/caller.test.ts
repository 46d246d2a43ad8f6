import { expect, it, vi } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { CALLER_OPTIONS, callerOf } from '../../src/registrations/for-tests.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { listening } from '../adapters/raw-client.ts';

it('a date in Retry-After is seen from the clock that was given', async () => {
  const date = 'Sun, 01 Mar 2026 12:00:30 GMT';
  await using server = await listening((_req, res) => res.writeHead(503, { 'retry-after': date }).end());
  const now = (): number => Date.parse('2026-03-01T12:00:00Z');
  const { callFor } = callerOf('test', { allowLoopback: true }, CALLER_OPTIONS, now);
  const { fetch: sellerFetch } = await callFor(server.url, { operation: 'get_products' });
  const signal = AbortSignal.timeout(60_000);
  const asking = sellerFetch(server.url, { method: 'GET', headers: {}, moved: new Map(), signal });
  await expect(asking).rejects.toMatchObject({
    name: 'SellerBusyError',
    message: 'The seller answers 503: it is busy. Call it again in 30000 ms.',
    status: 503,
    retryAfterMs: 30_000,
  });
});

const LIMITED = { code: 'RATE_LIMITED', message: 'slower', retry_after: 4.2 };

it.each([
  ['in the body', {}, { adcp_error: LIMITED }, 5000],
  ['in a JSON-RPC error', {}, { error: { code: -32_029, data: { adcp_error: LIMITED } } }, 5000],
  ['shorter in the header', { 'retry-after': '2' }, { errors: [LIMITED] }, 5000],
  ['longer in the header', { 'retry-after': '9' }, { errors: [LIMITED] }, 9000],
  ['nowhere', {}, { adcp_error: { ...LIMITED, retry_after: '4' } }, undefined],
] as const)('the pause of 429 is the longest that is asked for: %s', async (_where, headers, body, ms) => {
  await using server = await listening((_req, res) =>
    res.writeHead(429, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body)),
  );
  const { callFor } = callerOf('test', { allowLoopback: true }, CALLER_OPTIONS);
  const { fetch: sellerFetch } = await callFor(server.url, { operation: 'get_products' });
  const signal = AbortSignal.timeout(60_000);
  const asking = sellerFetch(server.url, { method: 'GET', headers: {}, moved: new Map(), signal });
  await expect(asking).rejects.toMatchObject({ name: 'SellerBusyError', status: 429, retryAfterMs: ms });
});

const SAYS = [
  [
    'empty',
    '',
    'auth.token: the function returned an empty text. Return the token, or undefined if there is none.',
  ],
  ['blank', ' \n', 'auth.token: the function returned an empty text'],
  ['a number', 5, 'auth.token: the function returned a number'],
  ['null', null, 'auth.token: the function returned null'],
  ['a header', 'Bearer T', 'auth.token: begins with "Bearer ". Give the token alone.'],
  ['a header, in small letters', 'bearer T', 'auth.token: begins with "Bearer "'],
  ['of other letters', 'tökén–1', 'auth.token: has a character that no HTTP header can have'],
  ['of two lines', 'a\nb', 'auth.token: has a character that no HTTP header can have'],
] as const;

it.each(SAYS)('a token from a function that is %s: nobody is called', async (_what, token, message) => {
  const auth = { type: 'bearer', token: () => token as string } as const;
  const { callFor } = callerOf('test', { auth }, CALLER_OPTIONS);
  const calling = callFor('https://seller.example/mcp', { operation: 'get_products' });
  await expect(calling).rejects.toBeInstanceOf(ConfigError);
  await expect(calling).rejects.toThrow(message);
});

const FOR_LOOPBACK =
  'For development on this machine set allowLoopback: true in mcpCaller or a2aCaller, too.';

it.each([
  ['http://seller.example/mcp', `not https. ${FOR_LOOPBACK}`],
  [
    'https://127.0.0.1/mcp',
    `refused: 127.0.0.1 is not a public host (Loopback, RFC 1122 §3.2.1.3). ${FOR_LOOPBACK}`,
  ],
  [
    'https://10.0.0.5/mcp',
    "refused: 10.0.0.5 is not a public host (Private-Use, RFC 1918). A host of your own network has to be named: allowHosts: ['10.0.0.5'].",
  ],
])(
  'an agentUrl that may not be called is a wrong option, and no token is made for it: %s',
  async (url, reason) => {
    const token = vi.fn(() => 'T');
    const { callFor } = callerOf('test', { auth: { type: 'bearer', token } }, CALLER_OPTIONS);
    const calling = callFor(url, { operation: 'get_products' });
    await expect(calling).rejects.toBeInstanceOf(ConfigError);
    await expect(calling).rejects.toThrow(`agentUrl: "${url}" is ${reason}`);
    expect(token).not.toHaveBeenCalled();
  },
);

it('a token that cannot be one is refused at construction', () => {
  const make = (token: string) => () => callerOf('test', { auth: { type: 'bearer', token } }, CALLER_OPTIONS);
  expect(make('Bearer T')).toThrow(ConfigError);
  expect(make('Bearer T')).toThrow('auth.token: begins with "Bearer ". Give the token alone.');
  expect(make('tökén–1')).toThrow('auth.token: has a character that no HTTP header can have');
  expect(make(' ')).toThrow('auth.token: is empty. Is the environment variable set?');
  // A secret that was read from a file: a header's value has no line feed at its end.
  expect(make('T\n')).not.toThrow();
});

it('no token of an error is in its message', () => {
  const make = () => callerOf('test', { auth: { type: 'bearer', token: 'Bearer s3cret' } }, CALLER_OPTIONS);
  expect(make).toThrow(expect.not.objectContaining({ message: expect.stringContaining('s3cret') as string }));
});

it.each([
  ['mcpCaller', mcpCaller, 'tools/list'],
  ['a2aCaller', a2aCaller, 'agent-card'],
] as const)('%s asks for a token by seller, operation and ref', async (_, make, list) => {
  await using server = await listening((_req, res) => res.writeHead(404).end());
  const asked: unknown[] = [];
  const token = (...of: readonly unknown[]): string => `token ${asked.push(of)}`;
  const call = make({ auth: { type: 'bearer', token }, allowLoopback: true });
  const signal = AbortSignal.timeout(60_000);
  await expect(call(server.url, 'create_media_buy', {}, { signal, ref: 'account 7' })).rejects.toThrow();
  await expect(call(server.url, 'get_products', {}, { signal })).rejects.toThrow();
  expect(asked).toEqual([
    [server.url, { operation: 'create_media_buy', ref: 'account 7' }],
    [server.url, { operation: 'get_products' }],
  ]);
  await expect(call.operations?.(server.url, { signal, ref: 'account 7' })).rejects.toThrow();
  expect(asked[2]).toEqual([server.url, { operation: list, ref: 'account 7' }]);
});

const PAGE = `<!doctype html><html><body>${'<p>Nothing here.</p>'.repeat(100)}</body></html>`;
const PAGES = [
  [404, 'text/html; charset=utf-8', ' answers HTTP 404 with a web page. Is agentUrl right?'],
  [405, 'text/html', ' answers HTTP 405 with a web page. Is agentUrl right?'],
  [404, 'text/plain', ' answers HTTP 404. Is agentUrl right?'],
  [502, 'text/html', ' answers HTTP 502 with a web page.'],
] as const;
const CALLERS = [
  ['mcpCaller', mcpCaller({ allowLoopback: true })],
  ['a2aCaller', a2aCaller({ allowLoopback: true, version: '1.0' })],
] as const;
const ANSWERED = CALLERS.flatMap(([name, call]) => PAGES.map((page) => [name, ...page, call] as const));

it.each(ANSWERED)('%s: HTTP %i of %s is one short line', async (_name, status, type, says, call) => {
  await using server = await listening((_req, res) =>
    res.writeHead(status, { 'content-type': type }).end(PAGE),
  );
  const signal = AbortSignal.timeout(60_000);
  const agentUrl = `${server.url}/mcp`;
  await expect(call(agentUrl, 'create_media_buy', {}, { signal })).rejects.toThrow(
    expect.objectContaining({ message: `${agentUrl}${says}` }),
  );
});
