import { describe, expect, test } from 'vitest';
import { protocolsFor, type SenderEntry } from '../../src/for-tests.ts';
import { type Answerer, gate, type KeyServer, sends, startKeyServer } from './key-server.ts';
import { type Bench, BRAND, MINUTE, publicJwk, senderEntry, setup, START, startSeller } from './setup.ts';

const LIST = '/revocations.json';
const WELL_KNOWN = '/.well-known/proto-revocations.json';
const GOVERNANCE = '/.well-known/governance-revocations.json';
const iso = (ms: number): string => new Date(ms).toISOString();

function list(server: KeyServer, at: number, more: object = {}): object {
  return {
    version: 1,
    issuer: server.origin,
    updated: iso(at),
    next_update: iso(at + 5 * MINUTE),
    revoked_kids: ['revoked'],
    revoked_jtis: [],
    ...more,
  };
}

interface Polled extends Bench {
  readonly server: KeyServer;
  readonly check: (keyid: string) => Promise<string>;
}

async function polled(limits = {}): Promise<Polled> {
  const server = await startKeyServer();
  server.serve(LIST, list(server, START));
  const bench = await setup({ limits });
  const sender = senderEntry(`${server.origin}/mcp`, { revocation: { url: `${server.origin}${LIST}` } });
  return { ...bench, server, check: async (keyid) => await bench.keys.revocation(sender, keyid) };
}

describe('static revocation', () => {
  test.each([
    ['discover: false', { revocation: { discover: false } }],
    ['static pins', { pins: [publicJwk('k')] }],
  ])('%s: valid, and nothing is fetched', async (_what, more) => {
    const fetched: string[] = [];
    const transport = (url: string): Promise<Response> => {
      fetched.push(url);
      return Promise.reject(new Error('fetched'));
    };
    const { keys } = await setup({ fetch: transport });
    expect(await keys.revocation(senderEntry('https://s.example/', more), 'k')).toBe('valid');
    expect(fetched).toEqual([]);
  });

  test('revokedKids from configuration', async () => {
    const { keys } = await setup();
    const sender = senderEntry('https://s.example/', { revocation: { revokedKids: ['k'] } });
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
    expect(await keys.revocation(sender, 'K')).toBe('valid');
  });

  test('count beside a list, even one that cannot be fetched', async () => {
    const { keys } = await setup();
    const revocation = { url: 'https://localhost.invalid/r', revokedKids: ['k'] };
    expect(await keys.revocation(senderEntry('https://s.example/', { revocation }), 'k')).toBe('revoked');
  });
});

describe('a published list', () => {
  test('is fetched on first use, once for all callers', async () => {
    const { check, server } = await polled();
    expect(server.count()).toBe(0);
    const states = await Promise.all(['revoked', 'k1', 'k2', 'revoked'].map((keyid) => check(keyid)));
    expect(states).toEqual(['revoked', 'valid', 'valid', 'revoked']);
    expect(server.count(LIST)).toBe(1);
  });

  test('is polled when next_update has come', async () => {
    const { check, server, advance } = await polled();
    expect(await check('k')).toBe('valid');
    advance(5 * MINUTE - 1);
    await check('k');
    expect(server.count(LIST)).toBe(1);
    server.serve(LIST, list(server, START + 5 * MINUTE, { revoked_kids: ['k'] }));
    advance(1);
    expect(await check('k')).toBe('revoked');
    expect(server.count(LIST)).toBe(2);
  });

  test.each([
    ['next_update at once: not before 1 min', 0, MINUTE],
    ['next_update in a year: after 30 min', 365 * 24 * 60 * MINUTE, 30 * MINUTE],
  ])('%s', async (_what, ahead, poll) => {
    const { check, server, advance } = await polled();
    server.serve(LIST, list(server, START, { next_update: iso(START + ahead) }));
    await check('k');
    advance(poll - 1);
    await check('k');
    expect(server.count(LIST)).toBe(1);
    advance(1);
    await check('k');
    expect(server.count(LIST)).toBe(2);
  });

  test('that cannot be refreshed stays fresh until next_update + 4 × the interval, then is stale', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    await check('k');
    await server.close();
    advance(25 * MINUTE);
    expect(await check('k')).toBe('valid');
    expect(alarmsOf('revocation_stale')).toEqual([]);
    advance(1);
    expect(await check('k')).toBe('stale');
    expect(await check('k')).toBe('stale');
    expect(alarmsOf('revocation_stale')).toHaveLength(1);
    expect(await check('revoked')).toBe('revoked');
  });

  test('that is long past its next_update when it is fetched is stale', async () => {
    const { check, server } = await polled();
    server.serve(LIST, list(server, START - 26 * MINUTE));
    expect(await check('k')).toBe('stale');
  });

  test('with a next_update far ahead becomes stale all the same', async () => {
    const { check, server, advance } = await polled();
    server.serve(LIST, list(server, START, { next_update: iso(START + 1000 * 60 * MINUTE) }));
    await check('k');
    await server.close();
    advance(150 * MINUTE);
    expect(await check('k')).toBe('valid');
    advance(1);
    expect(await check('k')).toBe('stale');
  });

  test('that was never available is stale, and counts when it can be fetched', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    server.answer(LIST, (_req, res) => res.writeHead(503).end());
    expect(await check('k')).toBe('stale');
    server.serve(LIST, list(server, START));
    advance(MINUTE);
    expect(await check('k')).toBe('valid');
    server.answer(LIST, (_req, res) => res.writeHead(503).end());
    advance(60 * MINUTE);
    expect(await check('k')).toBe('stale');
    expect(alarmsOf('revocation_stale')).toHaveLength(2);
  });

  test('does not delay a delivery by a slow refresh while it is fresh enough', async () => {
    const { check, server, advance } = await polled({ patienceMs: 1 });
    await check('k');
    const held = gate(sends('{}'));
    server.answer(LIST, held.answerer);
    advance(6 * MINUTE);
    expect(await check('k')).toBe('valid');
    held.open();
  });

  test('leaves the previous one in force and raises an alarm when it is broken', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    await check('k');
    server.serve(LIST, list(server, START, { issuer: 'https://other.example', revoked_kids: ['k'] }));
    advance(6 * MINUTE);
    expect(await check('k')).toBe('valid');
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
  });
});

describe('a list that the brand.json origin may serve', () => {
  interface Discovered extends Bench {
    readonly server: KeyServer;
    readonly sender: SenderEntry;
    readonly check: (keyid: string) => Promise<string>;
  }

  async function discovered(limits = {}): Promise<Discovered> {
    const { server, sender } = await startSeller(publicJwk('k'));
    const bench = await setup({ limits });
    return { ...bench, server, sender, check: async (keyid) => await bench.keys.revocation(sender, keyid) };
  }

  test('is used when it is served', async () => {
    const { check, server } = await discovered();
    server.serve(WELL_KNOWN, list(server, START));
    expect(await check('revoked')).toBe('revoked');
    expect(await check('k')).toBe('valid');
    expect(server.count(WELL_KNOWN)).toBe(1);
  });

  const notFound: Answerer = (_req, res) => res.writeHead(404).end('<h1>not found</h1>');
  test.each<[string, Answerer]>([
    ['404', notFound],
    ['410', (_req, res) => res.writeHead(410).end()],
    ['403', (_req, res) => res.writeHead(403).end()],
    ['a redirect', (_req, res) => res.writeHead(302, { location: '/' }).end()],
    ["a web site's page for any path", sends('<!doctype html><script>{"payload":1}</script>')],
    ['an API that answers 200 to everything', sends('{"error":"not found"}')],
    ['nothing', sends('')],
  ])('is off where the answer is %s, without an alarm', async (_what, answerer) => {
    const { check, server, alarms } = await discovered();
    server.answer(WELL_KNOWN, answerer);
    expect([await check('k'), await check('revoked')]).toEqual(['valid', 'valid']);
    expect([server.count(WELL_KNOWN), alarms]).toEqual([1, []]);
  });

  test('is fetched again 5 minutes after there was none', async () => {
    const { check, server, advance } = await discovered();
    expect(await check('k')).toBe('valid');
    server.serve(WELL_KNOWN, list(server, START, { revoked_kids: ['k'] }));
    advance(5 * MINUTE - 1);
    expect(await check('k')).toBe('valid');
    advance(1);
    expect(await check('k')).toBe('revoked');
  });

  test.each<[string, Answerer]>([
    ['5xx', (_req, res) => res.writeHead(503).end()],
    ['429', (_req, res) => res.writeHead(429).end()],
    ['a broken connection', (req) => req.socket.destroy()],
  ])('and could never be seen for an outage (%s): valid, key_fetch_failing', async (_what, answerer) => {
    const { check, server, alarmsOf, advance } = await discovered();
    server.answer(WELL_KNOWN, answerer);
    expect(await check('revoked')).toBe('valid');
    expect(alarmsOf('key_fetch_failing')).toHaveLength(1);
    expect(alarmsOf('revocation_stale')).toEqual([]);
    server.serve(WELL_KNOWN, list(server, START));
    advance(MINUTE);
    expect(await check('revoked')).toBe('revoked');
  });

  test('delays no delivery when it does not answer and was never seen', async () => {
    const { check, server } = await discovered({ patienceMs: 1 });
    const held = gate(sends('{}'));
    server.answer(WELL_KNOWN, held.answerer);
    expect(await check('k')).toBe('valid');
    held.open();
  });

  test.each<[string, Answerer]>([
    ['gone (404)', notFound],
    ['down (503)', (_req, res) => res.writeHead(503).end()],
    ['a web page', sends('<!doctype html>')],
  ])('once seen and then %s serves until it is stale, then 503', async (_what, answerer) => {
    const { check, server, advance, alarmsOf } = await discovered();
    server.serve(WELL_KNOWN, list(server, START));
    await check('k');
    server.answer(WELL_KNOWN, answerer);
    advance(25 * MINUTE);
    expect([await check('k'), await check('revoked')]).toEqual(['valid', 'revoked']);
    advance(1);
    expect([await check('k'), await check('revoked')]).toEqual(['stale', 'revoked']);
    expect(alarmsOf('revocation_stale')).toHaveLength(1);
  });

  test('is stale when it looks like a list, cannot be read and has no predecessor', async () => {
    const { check, server, alarmsOf } = await discovered();
    server.serve(WELL_KNOWN, list(server, START, { issuer: 'https://other.example' }));
    expect(await check('k')).toBe('stale');
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
    expect(alarmsOf('revocation_stale')).toHaveLength(1);
  });

  test('is at the origin that brand.json points to', async () => {
    const { check, server, keys, sender } = await discovered();
    const house = await startKeyServer();
    house.serve(BRAND, { agents: [{ url: sender.agentUrl }] });
    house.serve(WELL_KNOWN, list(house, START));
    server.serve(BRAND, { authoritative_location: `${house.origin}${BRAND}` });
    expect((await keys.find('k', { senders: [sender], arrivedAt: START })).candidates).toHaveLength(1);
    expect(await check('revoked')).toBe('revoked');
    expect(server.count(WELL_KNOWN)).toBe(0);
  });

  test('is looked for at two paths: what either list revokes is revoked, and both have to be fresh', async () => {
    const { check, server, advance, alarmsOf } = await discovered();
    server.serve(WELL_KNOWN, list(server, START, { revoked_kids: ['own'] }));
    server.serve(GOVERNANCE, list(server, START, { revoked_kids: ['all'] }));
    expect([await check('own'), await check('all'), await check('k')]).toEqual([
      'revoked',
      'revoked',
      'valid',
    ]);
    expect([server.count(WELL_KNOWN), server.count(GOVERNANCE)]).toEqual([1, 1]);
    server.answer(GOVERNANCE, (_req, res) => res.writeHead(404).end());
    advance(25 * MINUTE + 1);
    server.serve(WELL_KNOWN, list(server, START + 25 * MINUTE));
    expect([await check('k'), await check('all'), await check('own')]).toEqual(['stale', 'revoked', 'stale']);
    expect(alarmsOf('revocation_stale')).toMatchObject([{ url: `${server.origin}${GOVERNANCE}` }]);
  });

  test('is named after the protocol', async () => {
    const { server, sender } = await startSeller(publicJwk('k'));
    const { keys } = await setup({ protocols: protocolsFor('other') });
    server.serve('/.well-known/other-revocations.json', list(server, START));
    expect(await keys.revocation(sender, 'revoked')).toBe('revoked');
  });

  test('does not count beside one that configuration names', async () => {
    const { server, sender } = await startSeller(publicJwk('k'));
    const { keys } = await setup();
    server.serve(WELL_KNOWN, list(server, START));
    server.serve(LIST, list(server, START, { revoked_kids: [] }));
    const named = { ...sender, revocation: { url: `${server.origin}${LIST}` } };
    expect(await keys.revocation(named, 'revoked')).toBe('valid');
    expect(server.count(WELL_KNOWN)).toBe(0);
  });
});

test('stays in force when brand.json is no longer cached', async () => {
  const [house, seller] = [await startKeyServer(), await startSeller(publicJwk('k'))];
  const { server, sender } = seller;
  const list = { issuer: house.origin, updated: iso(START), next_update: iso(START + 30 * MINUTE) };
  house.serve(WELL_KNOWN, { ...list, revoked_kids: ['k'] });
  house.serve(BRAND, { agents: [{ url: sender.agentUrl }] });
  server.serve(BRAND, { authoritative_location: `${house.origin}${BRAND}` });
  const { keys, now, advance } = await setup();
  await keys.find('k', { senders: [sender], arrivedAt: now() });
  expect(await keys.revocation(sender, 'k')).toBe('revoked');
  await server.close();
  advance(31 * MINUTE);
  expect(await keys.revocation(sender, 'k')).toBe('revoked');
});

describe('a list that was rolled back', () => {
  test('does not make a revoked key valid: the newer one stays in force, with an alarm', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    server.serve(LIST, list(server, START, { revoked_kids: ['k'] }));
    expect(await check('k')).toBe('revoked');
    server.serve(
      LIST,
      list(server, START - 1000, { revoked_kids: [], next_update: iso(START + 99 * MINUTE) }),
    );
    advance(5 * MINUTE);
    expect([await check('k'), await check('k')]).toEqual(['revoked', 'revoked']);
    expect(alarmsOf('key_document_invalid')).toMatchObject([{ url: `${server.origin}${LIST}` }]);
    advance(21 * MINUTE);
    expect(await check('other')).toBe('stale');
  });

  test('is one alarm for any number of fetches, and none once a good one follows', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    server.serve(LIST, list(server, START));
    await check('k');
    server.serve(LIST, list(server, START - 1000));
    for (let time = 0; time < 3; time += 1) {
      advance(5 * MINUTE);
      await check('k');
    }
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
    server.serve(LIST, list(server, START + 15 * MINUTE, { revoked_kids: ['k'] }));
    advance(5 * MINUTE);
    expect(await check('k')).toBe('revoked');
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
  });

  test('of the same instant revokes what either list revokes', async () => {
    const { check, server, advance } = await polled();
    server.serve(LIST, list(server, START, { revoked_kids: ['a'] }));
    await check('a');
    server.serve(LIST, list(server, START, { revoked_kids: ['b'] }));
    advance(5 * MINUTE);
    expect([await check('b'), await check('a')]).toEqual(['revoked', 'revoked']);
  });

  test('may be replaced by a newer one that removes a key', async () => {
    const { check, server, advance } = await polled();
    await check('revoked');
    server.serve(LIST, list(server, START + 5 * MINUTE, { revoked_kids: [] }));
    advance(5 * MINUTE);
    expect(await check('revoked')).toBe('valid');
  });

  test('does not include a new list after our clock was set back', async () => {
    const { check, server, advance } = await polled();
    await check('k');
    advance(-60 * MINUTE);
    server.serve(LIST, list(server, START + 5 * MINUTE, { revoked_kids: ['k'] }));
    expect(await check('k')).toBe('revoked');
  });

  test('with an updated in the future does not block the lists that follow', async () => {
    const { check, server, advance } = await polled();
    const year = 365 * 24 * 60 * MINUTE;
    server.serve(LIST, list(server, START + year));
    expect(await check('k')).toBe('valid');
    server.serve(LIST, list(server, START + 30 * MINUTE, { revoked_kids: ['k'] }));
    advance(30 * MINUTE);
    expect(await check('k')).toBe('revoked');
  });
});
