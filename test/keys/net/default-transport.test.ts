import nodeDns from 'node:dns';
import { createServer } from 'node:http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { dnsModule, netModules } from '../../../src/keys/net/runtime.ts';
import { defaultTransport } from '../../../src/keys/net/transport.ts';
import { exchange } from '../../../src/keys/net/connection.ts';
import { PUBLIC } from '../../support/network.ts';
import { listening } from '../../support/tls.ts';
import { house } from '../../receiver/setup.ts';
import { PATIENT } from '../setup.ts';
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
    await expect(called(defaultTransport(false, how), 'https://seller.example/')).rejects.toThrow(
      times === 1 ? 'looked up' : 'asked',
    );
    expect([lookup.mock.calls.length, direct.mock.calls.length]).toEqual([times, 1 - times]);
    vi.restoreAllMocks();
  });

  test('as the receiver is told', async () => {
    const lookup = vi.spyOn(nodeDns.promises, 'lookup').mockRejectedValue(new Error('looked up'));
    const { receiver, alarms } = await house({
      senders: [{ agentUrl: 'https://seller.example/mcp' }],
      dns: 'system',
    });
    await receiver.ready();
    await expect.poll(() => alarms.map(({ code }) => code), PATIENT).toContain('key_fetch_failing');
    expect(lookup).toHaveBeenCalledWith('seller.example', expect.anything());
    vi.restoreAllMocks();
    await receiver.stop();
  });
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
