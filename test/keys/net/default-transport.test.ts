import { createServer } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { dnsModule, netModules } from '../../../src/keys/net/builtin.ts';
import { defaultTransport } from '../../../src/keys/net/default-transport.ts';
import { exchange } from '../../../src/keys/net/exchange.ts';
import { PUBLIC } from '../../support/network.ts';
import { listening } from '../../support/tls.ts';
import { called, modules } from './bench.ts';

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
  const response = await called(defaultTransport(true), `http://127.0.0.1:${server.port}/`);
  await response.text();
  return connection;
}

test('where the runtime has sockets, its own connections: closed after one answer', async () => {
  expect(await userAgentOf()).toBe('close');
});

test('it refuses what is not public by itself', async () => {
  await expect(called(defaultTransport(false), 'https://127.0.0.1/')).rejects.toThrow('not a public host');
});

test.each([
  ['Bun/1.3.0', true],
  ['Cloudflare-Workers', false],
])('%s gets the platform’s fetch', async (userAgent, resolvesNames) => {
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

test('a node:http that does its own connecting is found out, and goes to no name', async () => {
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
  await expect(exchange(ownWay, socket, asked)).rejects.toThrow('takes no given connection');
  expect(hosts).toEqual([PUBLIC]);
});
