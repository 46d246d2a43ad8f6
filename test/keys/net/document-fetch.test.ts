import nodeDns from 'node:dns';
import { createServer } from 'node:http';
import { createServer as createTcpServer, Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  defaultFetch,
  dnsModule,
  exchange,
  platformFetch,
  netModules,
  nodeFetch,
  type NodeFetchOptions,
} from '../../../src/keys/for-tests.ts';
import { gate, testReceiver } from '../../receiver/setup.ts';
import { createTestNetwork, OTHER_PUBLIC, PUBLIC, PUBLIC_V6 } from '../../support/network.ts';
import { createTestCa, listening, startHttpsServer } from '../../support/tls.ts';
import { PATIENT } from '../setup.ts';
import { called, fetched, HOST, httpsBench, modules, textOf, transportIn } from './bench.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

async function userAgentOf(): Promise<string | undefined> {
  let connection: string | undefined;
  const server = await listening(
    createServer((req, res) => {
      connection = req.headers.connection;
      res.end('{}');
    }),
  );
  const response = await called(defaultFetch(true), `http://127.0.0.1:${server.port}/`);
  await response.text();
  return connection;
}

test('with sockets it uses its own connections, closed after one answer', async () => {
  expect(await userAgentOf()).toBe('close');
});

test('it refuses non-public addresses by itself', async () => {
  await expect(called(defaultFetch(false), 'https://127.0.0.1/')).rejects.toThrow('not a public host');
});

test.each([
  ['Bun/1.3.0', true],
  ['Cloudflare-Workers', false],
])('%s uses the platform’s fetch', async (userAgent, resolvesNames) => {
  vi.stubGlobal('navigator', { userAgent });
  expect(netModules()).toBeUndefined();
  expect(dnsModule() !== undefined).toBe(resolvesNames);
  expect(await userAgentOf()).toBe('keep-alive');
});

test('so does a runtime without Node’s modules', async () => {
  vi.stubGlobal('process', undefined);
  expect(netModules()).toBeUndefined();
  expect(dnsModule()).toBeUndefined();
  vi.stubGlobal('process', {});
  expect(netModules()).toBeUndefined();
});

test.each(['Node.js/24', 'Deno/2.5.0', undefined])('%s has the modules', (userAgent) => {
  vi.stubGlobal('navigator', userAgent === undefined ? undefined : { userAgent });
  expect(netModules()).toBeDefined();
});

describe('names are looked up', () => {
  test.each([
    ['by DNS servers on Node', 'Node.js/24', undefined, 0],
    ["by the system on Node with dns: 'system'", 'Node.js/24', 'system', 1],
    ['by the system on Deno, whose node:dns asks no server with a time-out', 'Deno/2.5.0', undefined, 1],
    ['by the system on Bun, as its fetch does', 'Bun/1.3.0', undefined, 1],
  ] as const)('%s', async (_what, userAgent, how, times) => {
    vi.stubGlobal('navigator', { userAgent });
    vi.stubGlobal('fetch', () => Promise.reject(new Error('fetched')));
    const lookup = vi.spyOn(nodeDns.promises, 'lookup').mockRejectedValue(new Error('looked up'));
    const direct = vi
      .spyOn(nodeDns.promises.Resolver.prototype, 'resolve4')
      .mockRejectedValue(new Error('asked'));
    vi.spyOn(nodeDns.promises.Resolver.prototype, 'resolve6').mockRejectedValue(new Error('asked'));
    await expect(called(defaultFetch(false, how), 'https://seller.example/')).rejects.toThrow(
      times === 1 ? 'looked up' : 'asked',
    );
    expect([lookup.mock.calls.length, direct.mock.calls.length]).toEqual([times, 1 - times]);
    vi.restoreAllMocks();
  });

  test('as the receiver is told', async () => {
    const lookup = vi.spyOn(nodeDns.promises, 'lookup').mockRejectedValue(new Error('looked up'));
    const { receiver, alarms } = await testReceiver({
      senders: [{ agentUrl: 'https://seller.example/mcp' }],
      advanced: { dns: 'system' },
    });
    await receiver.ready();
    await expect.poll(() => alarms.map(({ code }) => code), PATIENT).toContain('key_fetch_failing');
    expect(lookup).toHaveBeenCalledWith('seller.example', expect.anything());
    vi.restoreAllMocks();
    await receiver.stop();
  });
});

test('a node:http that connects by itself is detected, and connects to no name', async () => {
  const { http, net } = modules();
  const hosts: unknown[] = [];
  const ownWay = {
    ...http,
    request: (options: { host: string }) => {
      hosts.push(options.host);
      return http.request({ ...options, createConnection: () => new net.Socket() });
    },
  } as typeof http;
  const socket = new net.Socket();
  const asked = {
    url: new URL('https://seller.example/'),
    address: PUBLIC,
    maxBytes: 1000,
    method: 'GET',
    headers: {},
    signal: new AbortController().signal,
  };
  await expect(exchange(ownWay, socket, asked)).rejects.toThrow('does not accept a connection');
  expect(hosts).toEqual([PUBLIC]);
});

test('the platform’s fetch, behind the URL rules', async () => {
  const server = await listening(
    createServer((_req, res) => {
      res.end('{}');
    }),
  );
  const url = `http://127.0.0.1:${server.port}/`;
  const response = await called(platformFetch({ allowLoopback: true }), url);
  expect(await response.text()).toBe('{}');
  for (const refused of [url, `https://127.0.0.1:${server.port}/`, 'https://u@seller.example/', 'nonsense']) {
    await expect(called(platformFetch({ allowLoopback: false }), refused)).rejects.toThrow(TypeError);
  }
  expect(server.connections()).toBe(1);
});

test('a redirect is handed back', async () => {
  const server = await listening(
    createServer((_req, res) => {
      res.writeHead(302, { location: '/elsewhere' }).end();
    }),
  );
  const response = await called(platformFetch({ allowLoopback: true }), `http://127.0.0.1:${server.port}/`);
  expect(response.status).toBe(302);
  expect(server.connections()).toBe(1);
});

test('resolved addresses are checked where names can be resolved', async () => {
  const resolve = async (): Promise<string[]> => [OTHER_PUBLIC, '10.0.0.1'];
  await expect(called(platformFetch({ allowLoopback: false, resolve }))).rejects.toThrow(
    'seller.example resolves to 10.0.0.1, which is not public',
  );
});

test('the signal ends a resolution that never does', async () => {
  const resolve = (): Promise<string[]> => new Promise(() => undefined);
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(called(platformFetch({ allowLoopback: false, resolve }), undefined, signal)).rejects.toThrow(
    'stopped',
  );
});

test('a document is fetched from the checked address under the requested name', async () => {
  let host: string | undefined;
  let target: string | undefined;
  const bench = await httpsBench((req, res) => {
    host = req.headers.host;
    target = req.url;
    res.setHeader('cache-control', 'max-age=600').end('{"a":"é"}');
  });
  const result = await fetched(bench.transport, `https://${HOST}:8443/a%2Fb/../c?q='x'#top`);
  expect(textOf(result)).toBe('{"a":"é"}');
  expect(result.ok && result.headers.get('cache-control')).toBe('max-age=600');
  expect(host).toBe(`${HOST}:8443`);
  expect(target).toBe('/c?q=%27x%27');
  expect(bench.server.serverNames).toEqual([HOST]);
  expect(bench.network.dialled).toEqual([PUBLIC]);
});

test('certificates that are trusted may be a list', async () => {
  const bench = await httpsBench((_req, res) => res.end('x'));
  expect(textOf(await fetched(transportIn(bench.network, bench.ca, { ca: [bench.ca.pem] })))).toBe('x');
  expect(await fetched(transportIn(bench.network, bench.ca, { ca: [] }))).toMatchObject({ ok: false });
});

test('the request names the library, asks for identity encoding and closes its connection', async () => {
  let raw: readonly string[] = [];
  const bench = await httpsBench((req, res) => {
    raw = req.rawHeaders;
    res.end('{}');
  });
  await fetched(bench.transport);
  const headers = Object.fromEntries(raw.map((name, index) => [name.toLowerCase(), raw[index + 1]]));
  expect(headers).toMatchObject({
    accept: 'application/json',
    'accept-encoding': 'identity',
    connection: 'close',
    host: HOST,
    'user-agent': 'proto-webhooks',
  });
  await called(bench.transport);
  expect(raw).toContain('identity');
});

test('a name with its root dot: SNI and certificate are for the name without', async () => {
  const bench = await httpsBench((_req, res) => {
    res.end('{}');
  });
  const network = createTestNetwork({ [`${HOST}.`]: [PUBLIC] }, bench.server.port);
  expect(textOf(await fetched(transportIn(network, bench.ca), `https://${HOST}./doc`))).toBe('{}');
  expect(bench.server.serverNames).toEqual([HOST]);
});

test.each([
  [PUBLIC, PUBLIC],
  [PUBLIC_V6, `[${PUBLIC_V6}]`],
])(
  'a literal address is never resolved, has no SNI, and its certificate is for it: %s',
  async (address, host) => {
    const ca = await createTestCa();
    const server = await startHttpsServer(await ca.issue([address]), (_req, res) => {
      res.end('{}');
    });
    const network = createTestNetwork({}, { [address]: server.port });
    expect(textOf(await fetched(transportIn(network, ca), `https://${host}/doc`))).toBe('{}');
    expect(server.serverNames).toEqual([false]);
    expect(network.resolved).toEqual([]);
    expect(network.dialled).toEqual([address]);
  },
);

test('DNS rebinding: the name is resolved once, and the checked address is connected to', async () => {
  const bench = await httpsBench((_req, res) => {
    res.end('{}');
  });
  let asked = 0;
  const transport = transportIn(bench.network, bench.ca, {
    resolve: async () => {
      asked += 1;
      return asked % 2 === 1 ? [PUBLIC] : ['127.0.0.1'];
    },
  });
  expect(textOf(await fetched(transport))).toBe('{}');
  expect(asked).toBe(1);
  expect(bench.network.dialled).toEqual([PUBLIC]);
  expect(await fetched(transport)).toEqual({
    ok: false,
    reason: `${HOST} resolves to 127.0.0.1, which is not public (Loopback, RFC 1122 §3.2.1.3)`,
  });
  expect(asked).toBe(2);
  expect(bench.network.dialled).toEqual([PUBLIC]);
});

test.each([
  ['private last', [PUBLIC, '10.0.0.1']],
  ['private first', ['10.0.0.1', PUBLIC]],
  ['private among many', [PUBLIC, OTHER_PUBLIC, PUBLIC_V6, '::1', OTHER_PUBLIC]],
  ['mapped private', [PUBLIC, '::ffff:127.0.0.1']],
  ['of a zone', [PUBLIC, 'fe80::1%lo']],
  ['a name', [PUBLIC, 'other.example']],
  ['beyond those that would be tried', [PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, '10.0.0.1']],
])('an answer with one refused address is refused as a whole: %s', async (_what, addresses) => {
  const bench = await httpsBench((_req, res) => {
    res.end('{}');
  });
  const network = createTestNetwork({ [HOST]: addresses }, bench.server.port);
  expect(await fetched(transportIn(network, bench.ca))).toMatchObject({
    ok: false,
    reason: expect.stringContaining('which is not public'),
  });
  expect(network.dialled).toEqual([]);
  expect(bench.server.connections()).toBe(0);
});

test('a name without addresses, and one that does not resolve, are reasons', async () => {
  const ca = await createTestCa();
  const network = createTestNetwork({ [HOST]: [] }, {});
  expect(await fetched(transportIn(network, ca))).toEqual({ ok: false, reason: `${HOST} has no address` });
  expect(await fetched(transportIn(network, ca), 'https://none.example/')).toEqual({
    ok: false,
    reason: 'getaddrinfo ENOTFOUND none.example',
  });
});

test('the deadline applies to a resolver that never answers', async () => {
  const ca = await createTestCa();
  const network = createTestNetwork({}, {});
  const transport = transportIn(network, ca, { resolve: () => new Promise(() => undefined) });
  expect(await fetched(transport, `https://${HOST}/`, 50)).toEqual({
    ok: false,
    reason: 'no whole answer within 50 ms',
  });
});

test('a connection that leads elsewhere is refused before a byte is sent', async () => {
  const bench = await httpsBench((_req, res) => {
    res.end('{}');
  });
  const { dial } = bench.network;
  const transport = transportIn(bench.network, bench.ca, {
    dial: (address, port) => ({ ...dial(address, port), peerAddress: () => '10.0.0.1' }),
  });
  expect(await fetched(transport)).toEqual({
    ok: false,
    reason: `the connection went to 10.0.0.1 instead of ${PUBLIC}, which was checked`,
  });
  await bench.server.idle();
  expect(bench.server.serverNames).toEqual([]);
});

test('the peer is checked on real connections too: 0.0.0.0 leads to 127.0.0.1', async () => {
  const server = await listening(
    createServer((_req, res) => {
      res.end('{}');
    }),
  );
  const transport = nodeFetch(modules(), { allowLoopback: true });
  const control = await called(transport, `http://127.0.0.1:${server.port}/`);
  expect(await control.text()).toBe('{}');
  await expect(called(transport, `http://0.0.0.0:${server.port}/`)).rejects.toThrow(
    'the connection went to 127.0.0.1 instead of 0.0.0.0, which was checked',
  );
});

test.each([
  ['of another name', ['other.example'], {}, 'the certificate is for another host'],
  ['of the address where a name was asked for', [PUBLIC], {}, 'the certificate is for another host'],
  ['of a parent with a wildcard', ['*.seller.example'], {}, 'the certificate is for another host'],
  ['that is self-signed', [HOST], { selfSigned: true }, /^self-signed certificate/],
  ['that has run out', [HOST], { expired: true }, 'certificate has expired'],
])('a certificate %s is refused', async (_what, hosts, options, reason) => {
  const ca = await createTestCa();
  let requests = 0;
  const server = await startHttpsServer(await ca.issue(hosts, options), (_req, res) => {
    requests += 1;
    res.end('{}');
  });
  const network = createTestNetwork({ [HOST]: [PUBLIC] }, server.port);
  const result = await fetched(transportIn(network, ca));
  expect(!result.ok && result.reason).toMatch(reason);
  expect(requests).toBe(0);
});

test('an unknown certificate authority is refused', async () => {
  const bench = await httpsBench((_req, res) => {
    res.end('{}');
  });
  const { resolve, dial } = bench.network;
  const result = await fetched(nodeFetch(modules(), { resolve, dial }));
  expect(result).toMatchObject({ ok: false, reason: expect.stringMatching(/unable to (?:verify|get)/) });
});

test('a server that speaks no TLS is a reason', async () => {
  const bench = await httpsBench(() => undefined);
  const plain = await listening(
    createServer((_req, res) => {
      res.end('{}');
    }),
  );
  const network = createTestNetwork({ [HOST]: [PUBLIC] }, plain.port);
  expect(await fetched(transportIn(network, bench.ca))).toMatchObject({ ok: false });
});

test('a handshake that never ends is ended by the time for connecting', async () => {
  const ca = await createTestCa();
  const mute = await listening(createTcpServer((socket) => socket.resume()));
  const network = createTestNetwork({ [HOST]: [PUBLIC] }, mute.port);
  const result = await fetched(transportIn(network, ca, { connectMs: 100 }));
  expect(result).toEqual({ ok: false, reason: 'no connection within 100 ms' });
  await mute.idle();
});

test('the time for connecting is 5 s where none is given', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const dialled = gate();
    const dial: NonNullable<NodeFetchOptions['dial']> = () => {
      dialled.open();
      return { socket: Object.assign(new Socket(), { connecting: true }), peerAddress: () => undefined };
    };
    const ended = fetched(
      nodeFetch(modules(), { resolve: async () => [PUBLIC], dial }),
      `https://${HOST}/doc`,
      600_000,
    );
    let result: unknown;
    void ended.then((given) => (result = given));
    await dialled.opened;
    await vi.advanceTimersByTimeAsync(4_999);
    expect(result).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(await ended).toEqual({ ok: false, reason: 'no connection within 5000 ms' });
  } finally {
    vi.useRealTimers();
  }
});

test('https only, no userinfo, nothing local: refused before a name is resolved', async () => {
  const ca = await createTestCa();
  const network = createTestNetwork({}, {});
  const transport = transportIn(network, ca);
  for (const url of [
    'http://seller.example/',
    'https://u:p@seller.example/',
    'https://localhost/',
    'https://10.0.0.1/',
    'nonsense',
  ]) {
    await expect(called(transport, url)).rejects.toThrow(TypeError);
  }
  expect(network.resolved).toEqual([]);
  expect(network.dialled).toEqual([]);
});

test('allowLoopback, for development: http, private addresses, names that resolve to them', async () => {
  const server = await listening(
    createServer((req, res) => {
      res.end(req.headers.host);
    }),
  );
  const transport = nodeFetch(modules(), { allowLoopback: true });
  for (const host of [`127.0.0.1:${server.port}`, `localhost:${server.port}`]) {
    const response = await called(transport, `http://${host}/`);
    expect(await response.text()).toBe(host);
  }
});
