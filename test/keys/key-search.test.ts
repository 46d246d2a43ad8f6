import { describe, expect, test } from 'vitest';
import type { Jwk } from '../../src/index.ts';
import { type Candidate, gather, type SenderMatch } from '../../src/keys/for-tests.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { gate, latch, sends } from './key-server.ts';
import { onWorkerd } from '../support/workerd.ts';
import { BRAND, JWKS_PATH, MINUTE, PATIENT, publicJwk, senderEntry, setup, startSeller } from './setup.ts';

describe('an unauthenticated request adds no cache entry', () => {
  test('10,000 random keyids evict nothing from a cache with room for one sender’s documents', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { keys, now } = await setup({ limits: { maxDocuments: 2 } });
    await keys.find('k', { senders: [seller.sender], arrivedAt: now() });
    const keyids = Array.from({ length: 10_000 }, () => crypto.randomUUID());
    for (const keyid of keyids) {
      const search = await keys.find(keyid, { senders: [seller.sender], arrivedAt: now() });
      expect(search.candidates).toEqual([]);
    }
    const fetched = seller.server.count();
    const { candidates } = await keys.find('k', { senders: [seller.sender], arrivedAt: now() });
    expect(candidates).toHaveLength(1);
    expect(seller.server.count()).toBe(fetched);
    expect([seller.server.count(BRAND), seller.server.count(JWKS_PATH)]).toEqual([1, 2]);
  });
});

describe('the use of a known key keeps its documents fresh', () => {
  test('brand.json and JWKS are refreshed from 80 % of their life without delaying the delivery', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { server, sender } = seller;
    const { keys, now, advance } = await setup();
    await keys.find('k', { senders: [sender], arrivedAt: now() });
    const held = gate((_req, res) => res.writeHead(500).end());
    for (const path of [BRAND, JWKS_PATH]) server.answer(path, held.answerer);
    advance(4 * MINUTE);
    expect((await keys.find('k', { senders: [sender], arrivedAt: now() })).candidates).toHaveLength(1);
    await Promise.all([server.asked(BRAND, 2), server.asked(JWKS_PATH, 2)]);
    expect((await keys.find('k', { senders: [sender], arrivedAt: now() })).candidates).toHaveLength(1);
    expect(server.count()).toBe(4);
    held.open();
  });

  test('so a removed key is unknown before its copy’s life ends', async () => {
    const [old, next] = [publicJwk('old'), publicJwk('new')];
    const seller = await startSeller(old);
    const { keys, now, advance } = await setup();
    await keys.find('old', { senders: [seller.sender], arrivedAt: now() });
    seller.publish(next);
    advance(4 * MINUTE);
    await keys.find('old', { senders: [seller.sender], arrivedAt: now() });
    await expect
      .poll(
        async () => (await keys.find('new', { senders: [seller.sender], arrivedAt: now() })).candidates,
        PATIENT,
      )
      .toHaveLength(1);
    advance(1);
    expect((await keys.find('old', { senders: [seller.sender], arrivedAt: now() })).candidates).toEqual([]);
  });
});

describe('a 304 decides nothing about a keyid', () => {
  /** As coarse as a second: the tag stays while the keys change. */
  async function coarse(...first: readonly Jwk[]) {
    const seller = await startSeller();
    const serve = (...keys: readonly Jwk[]): void => {
      seller.server.answer(JWKS_PATH, (req, res) => {
        if (req.headers['if-none-match'] === '"same"') res.writeHead(304).end();
        else res.writeHead(200, { etag: '"same"' }).end(JSON.stringify({ keys }));
      });
    };
    serve(...first);
    return { ...seller, serve };
  }

  test('the set is fetched for an unknown keyid', async () => {
    const { server, sender, serve } = await coarse(publicJwk('k'));
    const { keys, now, advance } = await setup();
    await keys.find('k', { senders: [sender], arrivedAt: now() });
    serve(publicJwk('k'), publicJwk('new'));
    advance(5 * MINUTE);
    const arrivedAt = now();
    advance(1);
    await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(server.count(JWKS_PATH)).toBe(2);
    // This one arrived before the 304 came.
    expect((await keys.find('new', { senders: [sender], arrivedAt })).candidates).toHaveLength(1);
    expect(server.count(JWKS_PATH)).toBe(3);
  });

  test('the set is fetched for a keyid whose key fails to verify, as it may have been replaced', async () => {
    const { server, sender, serve } = await coarse(publicJwk('k'));
    const { keys, now, advance } = await setup();
    await keys.find('k', { senders: [sender], arrivedAt: now() });
    const next = publicJwk('k');
    serve(next);
    advance(5 * MINUTE);
    const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(server.count(JWKS_PATH)).toBe(2);
    advance(1);
    const again = await keys.findReplaced('k', { senders: [sender], arrivedAt: now() }, candidates);
    expect(again.candidates.map(({ key }) => key.jwk['x'])).toEqual([next['x']]);
    // Now the set itself was fetched less than 30 s ago: that decides.
    const last = await keys.findReplaced('k', { senders: [sender], arrivedAt: now() }, [
      ...candidates,
      ...again.candidates,
    ]);
    expect(last).toEqual({ candidates: [], undecided: [] });
    expect(server.count(JWKS_PATH)).toBe(3);
  });
});

test('a cached copy of an intermediary does not make a replaced key forged', async () => {
  const seller = await startSeller();
  const { server, sender } = seller;
  const [stale, origin] = [publicJwk('k'), publicJwk('k')];
  server.answer(JWKS_PATH, (req, res) => {
    const endToEnd = req.headers['cache-control'] === 'no-cache';
    const keys = [endToEnd ? origin : stale];
    res.writeHead(200, endToEnd ? {} : { age: '1200' }).end(JSON.stringify({ keys }));
  });
  const { keys, now } = await setup();
  await keys.warm([sender]);
  await server.asked(JWKS_PATH, 1);
  const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
  const again = await keys.findReplaced('k', { senders: [sender], arrivedAt: now() }, candidates);
  const tried = [...candidates, ...again.candidates];
  expect(tried.map(({ key }) => key.jwk['x'])).toContain(origin['x']);
});

test('after the clock was set back a set fetched before the arrival does not make a keyid unknown', async () => {
  const seller = await startSeller(publicJwk('k'));
  const { keys, now, advance } = await setup();
  await keys.find('k', { senders: [seller.sender], arrivedAt: now() });
  seller.publish(publicJwk('k'), publicJwk('new'));
  advance(-60 * MINUTE);
  expect((await keys.find('new', { senders: [seller.sender], arrivedAt: now() })).candidates).toHaveLength(1);
});

describe('on workerd, where a request owns its I/O', () => {
  test('two concurrent cold requests fetch for themselves, and their results serve later ones', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { server, sender } = seller;
    onWorkerd();
    const { keys, now } = await setup();
    const held = gate(sends(JSON.stringify({ agents: [{ url: sender.agentUrl }] })));
    server.answer(BRAND, held.answerer);
    const both = [
      keys.find('k', { senders: [sender], arrivedAt: now() }),
      keys.find('k', { senders: [sender], arrivedAt: now() }),
    ];
    await server.asked(BRAND, 2);
    held.open();
    for (const each of both) expect((await each).candidates).toHaveLength(1);
    expect(server.count(JWKS_PATH)).toBe(2);
    expect((await keys.find('k', { senders: [sender], arrivedAt: now() })).candidates).toHaveLength(1);
    expect(server.count()).toBe(4);
  });

  test('a request that was dropped during its fetch delays no other', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { server, sender } = seller;
    onWorkerd();
    const { keys, now } = await setup();
    const dead = gate(sends('{}'));
    server.answer(BRAND, dead.answerer);
    const never = keys.find('k', { senders: [sender], arrivedAt: now() });
    await server.asked(BRAND, 1);
    server.serve(BRAND, { agents: [{ url: sender.agentUrl }] });
    expect((await keys.find('k', { senders: [sender], arrivedAt: now() })).candidates).toHaveLength(1);
    dead.open();
    await never;
  });

  test('pins are imported without waiting for another request', async () => {
    const sender = senderEntry('https://pinned.example/', { pins: [publicJwk('k')] });
    onWorkerd();
    const { keys, now } = await setup();
    const both = [
      keys.find('k', { senders: [sender], arrivedAt: now() }),
      keys.find('k', { senders: [sender], arrivedAt: now() }),
    ];
    for (const each of both) expect((await each).candidates).toHaveLength(1);
  });
});

const LIMITS = { width: 8, deadlineMs: 5000, graceMs: 1000 };
const senders = (count: number): SenderEntry[] =>
  Array.from({ length: count }, (_, index) => senderEntry(`https://s${index}.example/`));
const candidate = (sender: SenderEntry): Candidate => ({
  sender,
  key: { kid: 'k', jwk: {}, verifyKey: 'not needed here' },
});
const never = (): Promise<SenderMatch> => new Promise(() => undefined);

test('answers come in the order of the senders', async () => {
  const [a, b, c] = senders(3);
  const later = latch();
  const found = await gather(
    [a, b, c].filter((sender) => sender !== undefined),
    async (sender) => {
      if (sender === a) await later.opened;
      else later.open();
      return sender === b ? { undecided: 'down' } : { candidates: [candidate(sender)] };
    },
    LIMITS,
  );
  expect(found.candidates.map(({ sender }) => sender)).toEqual([a, c]);
  expect(found.undecided).toEqual(['https://s1.example/: down']);
});

test('at most `width` are asked at a time', async () => {
  let running = 0;
  let most = 0;
  await gather(
    senders(30),
    async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return {};
    },
    LIMITS,
  );
  expect(most).toBe(8);
});

test('without senders the answer is empty', async () => {
  expect(await gather([], never, LIMITS)).toEqual({ candidates: [], undecided: [] });
});

test('a sender that does not answer does not delay one that has the key, and stays undecided', async () => {
  const all = senders(2);
  const found = await gather(
    all,
    async (sender) => (sender === all[1] ? { candidates: [candidate(sender)] } : await never()),
    { ...LIMITS, graceMs: 1 },
  );
  expect(found.candidates.map(({ sender }) => sender)).toEqual([all[1]]);
  expect(found.undecided).toEqual(['https://s0.example/: no answer in time']);
});

test('past the deadline a sender without an answer is undecided, and no other is asked', async () => {
  let asked = 0;
  const late = latch();
  const found = await gather(
    senders(20),
    async () => {
      asked += 1;
      await late.opened;
      return {};
    },
    { ...LIMITS, deadlineMs: 1 },
  );
  expect(found.undecided).toHaveLength(20);
  late.open();
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(asked).toBe(8);
});

test('a fault with one sender leaves only that one undecided', async () => {
  const all = senders(2);
  const found = await gather(
    all,
    async (sender) => {
      if (sender === all[0]) throw new Error('no engine');
      return await Promise.resolve({ candidates: [candidate(sender)] });
    },
    LIMITS,
  );
  expect(found.candidates).toHaveLength(1);
  expect(found.undecided).toEqual(['https://s0.example/: no engine']);
});
