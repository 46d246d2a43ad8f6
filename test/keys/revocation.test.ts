import { describe, expect, test } from 'vitest';
import { REVOCATION_LIST } from '../../src/keys/revocation.ts';
import { gate, type KeyServer, sends, startKeyServer } from './key-server.ts';
import { type Bench, MINUTE, senderEntry, setup, START } from './setup.ts';

const LIST = '/revocations.json';
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
  test('a sender without revocation: valid, and nothing is fetched', async () => {
    const { keys } = await setup({ transport: () => Promise.reject(new Error('fetched')) });
    expect(await keys.revocation(senderEntry('https://s.example/'), 'k')).toBe('valid');
    expect(await keys.revocation(senderEntry('https://s.example/', { revocation: {} }), 'k')).toBe('valid');
  });

  test('revokedKids from configuration', async () => {
    const { keys } = await setup();
    const sender = senderEntry('https://s.example/', { revocation: { revokedKids: ['k'] } });
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
    expect(await keys.revocation(sender, 'K')).toBe('valid');
  });

  test('count beside a list, even one that cannot be had', async () => {
    const { keys } = await setup();
    const revocation = { url: 'https://localhost.invalid/r', revokedKids: ['k'] };
    expect(await keys.revocation(senderEntry('https://s.example/', { revocation }), 'k')).toBe('revoked');
  });
});

describe('a published list', () => {
  test('is fetched on first use, once for all who ask', async () => {
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

  test('with a next_update far ahead goes stale all the same', async () => {
    const { check, server, advance } = await polled();
    server.serve(LIST, list(server, START, { next_update: iso(START + 1000 * 60 * MINUTE) }));
    await check('k');
    await server.close();
    advance(150 * MINUTE);
    expect(await check('k')).toBe('valid');
    advance(1);
    expect(await check('k')).toBe('stale');
  });

  test('that was never to be had is stale, and comes back when it can be had', async () => {
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

  test('a slow refresh does not hold up a delivery while the held list is fresh enough', async () => {
    const { check, server, advance } = await polled({ patienceMs: 1 });
    await check('k');
    const held = gate(sends('{}'));
    server.answer(LIST, held.answerer);
    advance(6 * MINUTE);
    expect(await check('k')).toBe('valid');
    held.open();
  });

  test('a broken one leaves the previous in force and raises an alarm', async () => {
    const { check, server, advance, alarmsOf } = await polled();
    await check('k');
    server.serve(LIST, list(server, START, { issuer: 'https://other.example', revoked_kids: ['k'] }));
    advance(6 * MINUTE);
    expect(await check('k')).toBe('valid');
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
  });
});

describe('what makes a list', () => {
  const at = 'https://seller.example:8443/r.json';
  const good = {
    version: 1,
    issuer: 'https://seller.example:8443',
    updated: '2026-03-01T12:00:00Z',
    next_update: '2026-03-01T14:10:00.5+02:00',
    revoked_kids: ['a'],
    revoked_jtis: ['j'],
  };
  const parse = (json: unknown): ReturnType<typeof REVOCATION_LIST.parse> =>
    REVOCATION_LIST.parse(new TextEncoder().encode(JSON.stringify(json)), at);

  test('a good one', () => {
    expect(parse(good)).toEqual({
      ok: true,
      value: { kids: new Set(['a']), nextUpdate: START + 10 * MINUTE + 500, interval: 10 * MINUTE + 500 },
    });
  });

  test.each([
    ['issuer', 'https://seller.example', 'issuer is not the origin of the list'],
    ['issuer', undefined, 'issuer is not the origin of the list'],
    ['next_update', 'tomorrow', 'next_update is not a timestamp'],
    ['next_update', '2026-13-01T12:00:00Z', 'next_update is not a timestamp'],
    ['next_update', 1_770_000_000, 'next_update is not a timestamp'],
    ['updated', undefined, 'updated is not a timestamp'],
    ['revoked_kids', 'a', 'revoked_kids is not an array of strings'],
    ['revoked_kids', ['a', 1], 'revoked_kids is not an array of strings'],
    ['revoked_jtis', {}, 'revoked_jtis is not an array of strings'],
  ])('%s: %j is refused', (member, value, reason) => {
    expect(parse({ ...good, [member]: value })).toEqual({ ok: false, reason });
  });

  test('a signed list is no plain one: refused', () => {
    expect(parse({ payload: 'e30', protected: 'e30', signature: 'AA' })).toMatchObject({ ok: false });
  });
});
