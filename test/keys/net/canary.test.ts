import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  type Block,
  IPV4_BEYOND,
  IPV4_SPECIAL,
  IPV6_SPECIAL,
  nodeFetch,
  systemDial,
  systemResolve,
} from '../../../src/keys/for-tests.ts';
import { createTestNetwork, PUBLIC, type TestNetwork } from '../../support/network.ts';
import { createTestCa, listening, type LoopbackServer, startHttpsServer } from '../../support/tls.ts';
import { called, HOST, modules, transportIn } from './bench.ts';
import { embeddingSpellings, ipv4Spellings, ipv6Spellings, samples } from './spellings.ts';

const IPV4: readonly Block[] = [...IPV4_SPECIAL, ...IPV4_BEYOND];
const IPV6 = IPV6_SPECIAL.filter(({ embeds }) => embeds === undefined);
const LOOPBACK = ['127.0.0.1', '127.1.2.3', '0.0.0.0'];

/** Hosts of URLs that would lead inward: every special-purpose block in every spelling that a URL can carry. */
function hostileHosts(): string[] {
  const ipv4 = IPV4.flatMap(samples).flatMap((address) => [
    ...ipv4Spellings(address),
    ...embeddingSpellings(address),
  ]);
  return [...new Set([...ipv4, ...IPV6.flatMap(samples).flatMap(ipv6Spellings)])];
}

/** Listens on loopback, answers nobody, and counts. */
async function startCanary(): Promise<LoopbackServer> {
  return await listening(createServer((socket) => socket.destroy()));
}

async function outcomes(urls: readonly string[], call: (url: string) => Promise<unknown>): Promise<string[]> {
  const reached: string[] = [];
  for (const url of urls) {
    await call(url).then(
      () => reached.push(url),
      () => undefined,
    );
  }
  return reached;
}

/** The canary notices every connection: it listens on each address there is. */
async function canaryAt(names: Readonly<Record<string, readonly string[]>>): Promise<{
  readonly canary: LoopbackServer;
  readonly network: TestNetwork;
  readonly call: (url: string) => Promise<unknown>;
}> {
  const ca = await createTestCa();
  const canary = await startCanary();
  const network = createTestNetwork(names, canary.port);
  const transport = transportIn(network, ca);
  return { canary, network, call: async (url) => await called(transport, url) };
}

describe('a server on loopback gets no connection', () => {
  test('for more than 1,000 hostile URLs, whatever address is dialled', async () => {
    const hosts = hostileHosts();
    expect(hosts.length).toBeGreaterThan(1000);
    const { canary, network, call } = await canaryAt({ [HOST]: [PUBLIC] });
    expect(
      await outcomes(
        hosts.map((host) => `https://${host}/jwks.json`),
        call,
      ),
    ).toEqual([]);
    expect([canary.connections(), network.dialled, network.resolved]).toEqual([0, [], []]);
    // It does hear of one that is dialled.
    await outcomes([`https://${HOST}/`], call);
    expect(network.dialled).toEqual([PUBLIC]);
    expect(canary.connections()).toBe(1);
  });

  test('when names of more than 1,000 URLs resolve to hostile addresses, alone or among public ones', async () => {
    const addresses = [...IPV4, ...IPV6].flatMap(samples);
    const embedding = IPV4.flatMap(samples).flatMap((address) =>
      embeddingSpellings(address).map((host) => host.slice(1, -1)),
    );
    const hostile = [...addresses, ...embedding];
    const names = Object.fromEntries(
      hostile.flatMap((address, index): [string, string[]][] => [
        [`alone${index}.example`, [address]],
        [`first${index}.example`, [address, PUBLIC]],
        [`last${index}.example`, [PUBLIC, address]],
      ]),
    );
    const urls = Object.keys(names).map((name) => `https://${name}/`);
    expect(urls.length).toBeGreaterThan(1000);
    const { canary, network, call } = await canaryAt({ ...names, [HOST]: [PUBLIC] });
    expect(await outcomes(urls, call)).toEqual([]);
    expect([canary.connections(), network.dialled]).toEqual([0, []]);
    expect(network.resolved).toHaveLength(urls.length);
    await outcomes([`https://${HOST}/`], call);
    expect(canary.connections()).toBe(1);
  });

  test('with the system’s own resolver and sockets, for every spelling of loopback', async () => {
    const canary = await startCanary();
    const { dns, net } = modules();
    const transport = nodeFetch(modules(), { resolve: systemResolve(dns), dial: systemDial(net) });
    const hosts = [
      ...LOOPBACK.flatMap((address) => [...ipv4Spellings(address), ...embeddingSpellings(address)]),
      ...ipv6Spellings('::1'),
      'localhost',
      'LocalHost.',
      'a.localhost',
      '127.0.0.1..',
      '0x7f.1..',
    ];
    const urls = hosts.flatMap((host) => [
      `https://${host}:${canary.port}/`,
      `http://${host}:${canary.port}/`,
      `https://user@${host}:${canary.port}/`,
      `https:\\\\${host}:${canary.port}/`,
      `https://${HOST}@${host}:${canary.port}/`,
    ]);
    expect(await outcomes(urls, async (url) => await called(transport, url))).toEqual([]);
    expect(canary.connections()).toBe(0);
    const open = nodeFetch(modules(), { allowLoopback: true });
    await outcomes([`http://127.0.0.1:${canary.port}/`], async (url) => await called(open, url));
    expect(canary.connections()).toBe(1);
  });

  test('for what the system’s resolver makes of odd numeric hosts', async () => {
    const canary = await startCanary();
    const { dns } = modules();
    const ca = await createTestCa();
    const network = createTestNetwork({}, canary.port);
    for (const odd of ['0177.0.0.1', '2130706433', '127.1', '0x7f000001']) {
      const transport = transportIn(network, ca, {
        resolve: async (_host, lookUp) => await systemResolve(dns)(odd, lookUp),
      });
      await expect(called(transport, `https://${HOST}/`)).rejects.toThrow();
    }
    expect([canary.connections(), network.dialled]).toEqual([0, []]);
  });
});

test('for a redirect to it, which is returned and not followed', async () => {
  const canary = await startCanary();
  const ca = await createTestCa();
  const server = await startHttpsServer(await ca.issue([HOST]), (_req, res) => {
    res.writeHead(302, { location: `http://127.0.0.1:${canary.port}/` }).end();
  });
  const network = createTestNetwork({ [HOST]: [PUBLIC] }, { [PUBLIC]: server.port });
  const response = await called(transportIn(network, ca));
  expect([response.status, response.redirected]).toEqual([302, false]);
  expect(canary.connections()).toBe(0);
});
