import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Jwk, KeyFetch } from '../../src/index.ts';
import { MINUTE, publicJwk, senderEntry, setup, START } from '../keys/setup.ts';
import { FORM } from '../reliability/form.ts';
import { type Random, randomOf } from '../reliability/processes/random.ts';
import { tell } from '../support/tell.ts';
import { noisy } from './noise.ts';
import { collect } from '../support/collect.ts';

/* A seller whose documents change by the minute, for days: what it does to others, to the process, and to itself. */

/** Of the clock that the test moves, and how often at least each outcome is reached. */
const { minutes, atLeast, seed } = {
  short: { minutes: 900, atLeast: 3, seed: 20_260_101 },
  rows: { minutes: 900, atLeast: 3, seed: 20_260_102 },
  long: { minutes: 30 * 24 * 60, atLeast: 50, seed: Date.now() % 2 ** 31 },
}[FORM];

const HOSTILE = 'https://hostile.example/mcp';
const HONEST = 'https://honest.example/mcp';
const NOT_FOUND = new Response(null, { status: 404 });

/** Ids under which the hostile seller publishes keys, now and then several. */
const KIDS = ['a', 'b', 'c'];
const KEYS: readonly Jwk[] = KIDS.flatMap((kid) => [publicJwk(kid), publicJwk(kid)]);

const keysOf = (random: Random): object[] =>
  Array.from({ length: random.below(5) }, () => ({
    ...random.pick(KEYS),
    ...(random.below(4) === 0 && {
      revoked_at: random.pick(['2020-01-01T00:00:00Z', '2120-01-01T00:00:00Z', 'soon', 7]),
    }),
    ...(random.below(9) === 0 && { pad: 'x'.repeat(random.below(40_000)) }),
    ...(random.below(40) === 0 && { d: 'x' }),
  }));

/** What a document of each path may say. @param at Unix ms. */
const DOCUMENTS: Readonly<Record<string, (random: Random, at: number) => object>> = {
  '/.well-known/brand.json': (random, at) =>
    random.below(3) === 0
      ? { authoritative_location: `https://house-${random.pick([1, 2, at])}.example/house.json` }
      : { agents: [{ url: random.pick([HOSTILE, HOSTILE, HOSTILE, HONEST]) }] },
  '/house.json': (random) => ({
    agents: Array.from({ length: 1 + random.below(200) }, (_, index) => ({
      url: index === 0 ? HOSTILE : `https://agent-${index}.example/`,
      jwks_uri: random.pick([null, 'https://keys.example/.well-known/jwks.json', '/x', 5]),
    })).slice(0, random.pick([1, 1, 200])),
  }),
  '/.well-known/jwks.json': (random) => ({ keys: keysOf(random) }),
  '/.well-known/adagents.json': (random, at) =>
    random.below(3) === 0
      ? { authoritative_location: `https://list-${random.pick([1, 2, at])}.example/list.json` }
      : { authorized_agents: [{ url: HOSTILE, signing_keys: random.pick([undefined, keysOf(random)]) }] },
  '/list.json': (random) => ({ authorized_agents: [{ url: HOSTILE, signing_keys: keysOf(random) }] }),
  '/.well-known/governance-revocations.json': (random, at) => ({
    version: '1',
    issuer: 'https://hostile.example',
    updated: new Date(at - random.below(5) * MINUTE).toISOString(),
    next_update: new Date(at + random.below(9) * MINUTE).toISOString(),
    revoked_kids: KIDS.filter(() => random.below(3) === 0),
    revoked_jtis: [],
  }),
};

function answerOf(path: string, random: Random, at: number): Response {
  const make = DOCUMENTS[path];
  if (make === undefined) return NOT_FOUND.clone();
  const roll = random.below(20);
  if (roll === 0) throw new Error('connection closed');
  if (roll === 1) return new Response('down', { status: random.pick([404, 429, 500, 503]) });
  if (roll === 2) return Response.redirect(`https://${random.pick(['www.hostile', 'other'])}.example${path}`);
  if (roll === 3) return new Response('x'.repeat(random.below(2_000_000)));
  const text = JSON.stringify(make(random, at));
  const life = random.pick(['max-age=60', 'max-age=60', 'max-age=999999', 'no-store']);
  return new Response(roll < 7 ? noisy(text, random) : text, { headers: { 'cache-control': life } });
}

it(
  `a seller with hostile key documents for ${minutes} minutes: others keep their keys, memory is bounded, seed ${seed}`,
  { timeout: 3_600_000 },
  async () => {
    const random = randomOf(seed);
    const own = publicJwk('honest');
    let at = START;
    const transport: KeyFetch = async (url) => {
      const { hostname, pathname } = new URL(url);
      if (hostname !== 'honest.example') return answerOf(pathname, random, at);
      if (pathname.endsWith('brand.json')) return Response.json({ agents: [{ url: HONEST }] });
      return pathname.endsWith('jwks.json') ? Response.json({ keys: [own] }) : NOT_FOUND.clone();
    };
    const { keys, now, advance, alarms } = await setup({
      fetch: transport,
      allowLoopback: false,
      limits: { maxBytes: 2 * 1_048_576 },
      schedule: () => () => undefined,
    });
    const hostile = { ...senderEntry(HOSTILE), publishers: ['publisher.example'] };
    const senders = [hostile, senderEntry(HOSTILE), senderEntry(HONEST)];
    const counts = new Map<string, number>();
    const count = (what: string): unknown => counts.set(what, (counts.get(what) ?? 0) + 1);
    let before = 0;
    for (let minute = 0; minute < minutes; minute += 1) {
      const request = { senders: [random.pick(senders.slice(0, 2)), senderEntry(HONEST)], arrivedAt: now() };
      const honest = await keys.find('honest', request);
      expect(honest.candidates.map(({ sender, key }) => [sender.agentUrl, key.jwk['x']])).toEqual([
        [HONEST, own['x']],
      ]);
      expect(await keys.revocation(senderEntry(HONEST), 'honest')).toBe('valid');
      const sender = random.pick(senders.slice(0, 2));
      const keyid = random.pick([...KIDS, 'made-up']);
      const { candidates, undecided } = await keys.find(keyid, { senders: [sender], arrivedAt: now() });
      for (const { key } of candidates) expect(key.kid).toBe(keyid);
      count(candidates.length > 0 ? 'found' : undecided.length > 0 ? 'undecided' : 'unknown');
      count(await keys.revocation(sender, keyid));
      for (const { code } of alarms.splice(0)) count(code);
      advance(MINUTE * (random.below(30) === 0 ? 1 + random.below(300) : 1));
      at = now();
      if (minute % 60 !== 59) continue;
      await setImmediate();
      collect();
      const held = process.memoryUsage().heapUsed / 1_048_576;
      // By then all code is loaded.
      before ||= held;
      expect(held - before).toBeLessThan(24);
    }
    console.info(`hostile key documents: ${JSON.stringify(Object.fromEntries(counts))}`);
    const outcomes = ['found', 'undecided', 'unknown', 'valid', 'revoked', 'stale'];
    const told = ['key_document_invalid', 'key_fetch_failing', 'jwks_uri_moved', 'agent_not_listed'];
    expect([...outcomes, ...told].filter((what) => (counts.get(what) ?? 0) < atLeast)).toEqual([]);
    if (FORM === 'long') tell({ seed, minutes });
  },
);
