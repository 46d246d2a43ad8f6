import { describe, expect, test } from 'vitest';
import type { Jwk } from '../../src/crypto/engine.ts';
import { gate, sends } from './key-server.ts';
import {
  BRAND,
  JWKS_PATH,
  MINUTE,
  PATIENT,
  publicJwk,
  senderEntry,
  setup,
  startSeller,
  onWorkerd,
} from './setup.ts';

describe('nothing that an unauthenticated caller sends makes an entry', () => {
  test('10,000 random keyids push out nothing where just the two documents of the sender fit', async () => {
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

describe('a known key keeps its documents fresh by its use', () => {
  test('brand.json and JWKS are refreshed from 80 % of their life, and the delivery waits for neither', async () => {
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

  test('so that a key which was taken out is unknown before its copy has lived its life', async () => {
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

describe('a server that says "not changed" decides nothing about a keyid', () => {
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

  test('an unknown one: the set is fetched for it', async () => {
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

  test('one whose key fails to verify: it may have been replaced', async () => {
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

test('a copy that a cache on the way had held does not call a replaced key forged', async () => {
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

test('after the clock was set back a set fetched before the arrival does not call a keyid unknown', async () => {
  const seller = await startSeller(publicJwk('k'));
  const { keys, now, advance } = await setup();
  await keys.find('k', { senders: [seller.sender], arrivedAt: now() });
  seller.publish(publicJwk('k'), publicJwk('new'));
  advance(-60 * MINUTE);
  expect((await keys.find('new', { senders: [seller.sender], arrivedAt: now() })).candidates).toHaveLength(1);
});

describe('where a request owns its I/O (workerd)', () => {
  test('two concurrent cold requests fetch each for itself, and their results serve the next', async () => {
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

  test('a request that died while it fetched holds up no other', async () => {
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
