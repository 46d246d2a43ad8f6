import { describe, expect, test } from 'vitest';
import { walkChain } from '../../src/cli/for-tests.ts';
import type { EditionName, KeyFetch, Store } from '../../src/index.ts';
import { EDITION_NAMES, editionFor, type SenderEntry } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { type Answerer, type KeyServer, startKeyServer } from './key-server.ts';
import { type Bench, BRAND, declare, JWKS_PATH, MINUTE, publicJwk, senderEntry, setup } from './setup.ts';

const HOST = 'sales.seller.example';
const DOMAIN = 'seller.example';
const AGENT = `https://${HOST}/mcp`;
const AT_HOST = `/${HOST}${BRAND}`;
const AT_DOMAIN = `/${DOMAIN}${BRAND}`;
const KEYS = `/${DOMAIN}/keys`;

const status =
  (code: number): Answerer =>
  (_req, res) =>
    void res.writeHead(code).end();

interface Web extends Bench {
  readonly server: KeyServer;
  readonly transport: KeyFetch;
  readonly find: (keyid: string, sender?: SenderEntry) => Promise<unknown>;
  /** Moves past the memory of a failure and of a copy's life. */
  readonly later: (ms?: number) => void;
}

/** Sellers' hosts, all on one real server, each under a path of its own. */
async function web(store?: Store): Promise<Web> {
  const server = await startKeyServer();
  const transport: KeyFetch = async (url, init) => {
    const { host, pathname } = new URL(url);
    return await fetch(`${server.origin}/${host}${pathname}`, init);
  };
  const bench = await setup({ fetch: transport, allowLoopback: false, ...(store && { store }) });
  return {
    ...bench,
    server,
    transport,
    find: async (keyid, sender = of()) => {
      const { candidates, undecided } = await bench.keys.find(keyid, {
        senders: [sender],
        arrivedAt: bench.now(),
      });
      if (candidates.length > 0) return candidates.map(({ key }) => key.kid);
      return undecided.length > 0 ? undecided.join('; ') : 'unknown';
    },
    later: (ms = MINUTE) => {
      bench.advance(ms);
    },
  };
}

const of = (edition?: EditionName, more: Partial<SenderEntry> = {}): SenderEntry =>
  senderEntry(AGENT, { edition: editionFor(edition), ...more });

/** The registrable domain lists the agent, and the agent's host has no brand.json. */
async function onlyAtDomain(store?: Store): Promise<Web> {
  const one = await web(store);
  one.server.serve(AT_DOMAIN, { agents: [{ url: AGENT, jwks_uri: `https://${DOMAIN}/keys` }] });
  one.server.serve(KEYS, { keys: [publicJwk('k')] });
  return one;
}

describe('brand.json at the registrable domain (verification.md §5.1)', () => {
  test.each([undefined, ...EDITION_NAMES])('edition %s', async (edition) => {
    const { find, server, alarmsOf } = await onlyAtDomain();
    const asksOn = edition === undefined || edition === '3.3';
    const found = await find('k', of(edition));
    if (asksOn) expect(found).toEqual(['k']);
    else expect(found).toContain('answered 404');
    expect(server.count(AT_DOMAIN)).toBe(asksOn ? 1 : 0);
    expect(alarmsOf('key_fetch_failing')).toHaveLength(asksOn ? 0 : 1);
  });

  test('a key that its JWKS lacks is unknown, and the host is asked again once its 404 is a minute old', async () => {
    const { find, server, later, alarms } = await onlyAtDomain();
    expect(await find('k')).toEqual(['k']);
    expect(await find('k')).toEqual(['k']);
    expect(server.count(AT_HOST)).toBe(1);
    later();
    expect(await find('made up')).toBe('unknown');
    expect(server.count(AT_HOST)).toBe(2);
    expect(alarms).toEqual([]);
  });

  test('two senders of one file, only one of which looks on: each in its own way, whoever comes first', async () => {
    for (const order of [
      ['3.0', '3.3'],
      ['3.3', '3.0'],
    ] as const) {
      const { find } = await onlyAtDomain();
      for (const edition of order) {
        const found = await find('k', of(edition));
        if (edition === '3.3') expect(found).toEqual(['k']);
        else expect(found).toContain('answered 404');
      }
    }
  });

  test.each([
    ['500', status(500)],
    ['403', status(403)],
    ['410', status(410)],
    ['a redirect', (_req, res) => void res.writeHead(302, { location: `https://${DOMAIN}${BRAND}` }).end()],
    ['no JSON', (_req, res) => void res.writeHead(200).end('<html>')],
    ['no connection', (req) => void req.socket.destroy()],
  ] as [string, Answerer][])('%s at the host leads nowhere', async (_what, answerer) => {
    const { find, server, alarms } = await onlyAtDomain();
    server.answer(AT_HOST, answerer);
    expect(await find('k')).toContain(HOST);
    expect(server.count(AT_DOMAIN)).toBe(0);
    expect(alarms).toHaveLength(1);
  });

  test('a file of the host that does not list the agent is the one that counts', async () => {
    const { find, server, alarmsOf } = await onlyAtDomain();
    server.serve(AT_HOST, { agents: [] });
    expect(await find('k')).toContain('has no agent with this url');
    expect(server.count(AT_DOMAIN)).toBe(0);
    expect(alarmsOf('agent_not_listed').length).toBeGreaterThan(0);
  });

  test('a 404 takes nothing from the copy that is held of the host’s file, until its hard limit', async () => {
    const { find, server, later, alarmsOf } = await onlyAtDomain();
    server.serve(AT_HOST, { agents: [{ url: AGENT }] });
    server.serve(`/${HOST}${JWKS_PATH}`, { keys: [publicJwk('own')] });
    expect(await find('own')).toEqual(['own']);
    server.answer(AT_HOST, status(404));
    later(10 * MINUTE);
    expect(await find('own')).toEqual(['own']);
    expect(await find('k')).not.toEqual(['k']);
    expect(server.count(AT_DOMAIN)).toBe(0);
    await expect.poll(() => alarmsOf('key_fetch_failing').length).toBeGreaterThan(0);
    later(31 * MINUTE);
    expect(await find('k')).toEqual(['k']);
  });

  test('after its 404 the host may fail in another way, and comes back with a file of its own', async () => {
    const { find, server, later } = await onlyAtDomain();
    expect(await find('k')).toEqual(['k']);
    server.answer(AT_HOST, status(503));
    later();
    expect(await find('k')).toEqual(['k']);
    server.serve(AT_HOST, { agents: [{ url: AGENT }] });
    server.serve(`/${HOST}${JWKS_PATH}`, { keys: [publicJwk('own')] });
    later();
    expect(await find('own')).toEqual(['own']);
    expect(await find('k')).toBe('unknown');
  });

  test('a 404 from before the delivery makes no key unknown: the host may have its file again', async () => {
    const { find, server, later } = await onlyAtDomain();
    expect(await find('k')).toEqual(['k']);
    server.serve(AT_HOST, { agents: [{ url: AGENT }] });
    server.serve(`/${HOST}${JWKS_PATH}`, { keys: [publicJwk('own')] });
    expect(await find('own')).toContain(`${HOST}${BRAND} was answered with 404 before`);
    later();
    expect(await find('own')).toEqual(['own']);
  });

  test('nor does a host that fails in another way since', async () => {
    const { find, server, later } = await onlyAtDomain();
    expect(await find('k')).toEqual(['k']);
    server.answer(AT_HOST, status(503));
    later();
    expect(await find('made up')).toContain(`${HOST}${BRAND} was answered with 404 before`);
    expect(await find('k')).toEqual(['k']);
  });

  test('a 404 while a copy served is none of a host that fails in another way once the copy is over', async () => {
    const { find, server, later } = await onlyAtDomain();
    server.serve(AT_HOST, { agents: [{ url: AGENT }] });
    server.serve(`/${HOST}${JWKS_PATH}`, { keys: [publicJwk('own')] });
    expect(await find('own')).toEqual(['own']);
    server.answer(AT_HOST, status(404));
    later(10 * MINUTE);
    expect(await find('own')).toEqual(['own']);
    server.answer(AT_HOST, status(500));
    later(31 * MINUTE);
    expect(await find('k')).toContain('answered 500');
    expect(server.count(AT_DOMAIN)).toBe(0);
  });

  test.each([
    ['elsewhere', '/declared.json'],
    ['at the host', BRAND],
  ])('a seller that declares its brand.json %s has no other place', async (_what, path) => {
    const store = memoryStore();
    const brandJsonUrl = `https://${HOST}${path}`;
    await declare(store, AGENT, { brandJsonUrl });
    const { find, server } = await onlyAtDomain(store);
    expect(await find('k')).toContain('answered 404');
    expect(server.count(AT_DOMAIN)).toBe(0);
  });

  test('it may point on once, and no further', async () => {
    const { find, server, later } = await onlyAtDomain();
    server.serve(AT_DOMAIN, { house: 'house.example' });
    server.serve(`/house.example${BRAND}`, { agents: [{ url: AGENT, jwks_uri: `https://${DOMAIN}/keys` }] });
    expect(await find('k')).toEqual(['k']);
    server.serve(`/house.example${BRAND}`, { house: 'other.example' });
    later(31 * MINUTE);
    expect(await find('k')).toContain('points elsewhere again');
    expect(server.count(`/other.example${BRAND}`)).toBe(0);
  });

  test('absent at both: undecided, which names both, and one alarm', async () => {
    const { find, alarms } = await web();
    const reason = await find('k');
    expect(reason).toContain(`brand.json at https://${DOMAIN}${BRAND}: answered 404`);
    expect(reason).toContain(`https://${HOST}${BRAND} is absent`);
    expect(alarms).toHaveLength(1);
    expect(alarms[0]).toMatchObject({ code: 'key_fetch_failing', url: `https://${DOMAIN}${BRAND}` });
  });

  test.each([
    ['a customer of a hosting service', 'https://seller.github.io/mcp', 'https://github.io'],
    ['the registrable domain itself', 'https://seller.co.uk/mcp', 'https://co.uk'],
    ['an address', 'https://93.184.216.34/mcp', 'https://216.34'],
  ])('%s has no other place', async (_what, agentUrl, above) => {
    const { find, server, alarmsOf } = await web();
    server.serve(`/${new URL(above).host}${BRAND}`, { agents: [{ url: agentUrl }] });
    expect(await find('k', senderEntry(agentUrl, { edition: editionFor() }))).toContain('answered 404');
    expect(server.count()).toBe(1);
    expect(alarmsOf('key_fetch_failing')).toHaveLength(1);
  });

  test.each([
    ['brandJsonUrl', { brandJsonUrl: `https://${HOST}${BRAND}` }],
    ['pins', { pins: [publicJwk('pinned')] }],
  ])('%s of the owner is absolute', async (_what, more) => {
    const { find, server } = await onlyAtDomain();
    expect(await find('k', of(undefined, more))).not.toEqual(['k']);
    expect(server.count(AT_DOMAIN)).toBe(0);
  });

  test('what is revoked at the domain’s origin is revoked', async () => {
    const { find, keys, server, now } = await onlyAtDomain();
    const iso = (ms: number): string => new Date(ms).toISOString();
    server.serve(`/${DOMAIN}/.well-known/governance-revocations.json`, {
      version: 1,
      issuer: `https://${DOMAIN}`,
      updated: iso(now()),
      next_update: iso(now() + 5 * MINUTE),
      revoked_kids: ['k'],
      revoked_jtis: [],
    });
    const sender = of();
    expect(await find('k', sender)).toEqual(['k']);
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
    expect(await keys.revocation(sender, 'other')).toBe('valid');
  });

  test('`keys check` says that the host has none, and finds no fault in that', async () => {
    const { transport, now } = await onlyAtDomain();
    const asked = {
      sender: { agentUrl: AGENT },
      protocol: undefined,
      fetch: transport,
      now,
      allowLoopback: false,
    };
    const chain = await walkChain({ ...asked });
    expect(chain.faults).toEqual([]);
    expect(chain.links.slice(0, 3).map(({ document, url, state }) => [document, url, state])).toEqual([
      ['brand.json', `https://${HOST}${BRAND}`, 'absent'],
      ['brand.json', `https://${DOMAIN}${BRAND}`, 'good'],
      ['JWKS', `https://${DOMAIN}/keys`, 'good'],
    ]);
    const strict = await walkChain({ ...asked, edition: '3.1' });
    expect(strict.faults[0]).toContain('answered 404');
  });
});
