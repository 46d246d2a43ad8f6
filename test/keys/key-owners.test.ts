import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Jwk, KeyPair } from '../../src/sender/sign.ts';
import type { Outcome } from '../../src/index.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { said } from '../receiver/setup.ts';
import { ACCEPTED, deliveryBench, type DeliveryBench, keyNamed, UNAVAILABLE } from './delivery-bench.ts';
import { gate, sends, startKeyServer } from './key-server.ts';
import { onWorkerd } from '../support/workerd.ts';
import {
  type Bench,
  BRAND,
  JWKS_PATH,
  MINUTE,
  PATIENT,
  publicJwk,
  type Seller,
  senderEntry,
  setup,
  startSeller,
} from './setup.ts';

const SHORT = { 'cache-control': 'max-age=60' };
const PINS = '/.well-known/adagents.json';

/** Why each candidate may not use the key, or `may`, by agent URL; `own` where nothing has to be asked any more. */
async function used(bench: Bench, keyid: string, ...senders: readonly SenderEntry[]): Promise<object> {
  const { candidates } = await bench.keys.find(keyid, { senders, arrivedAt: bench.now() });
  const said = candidates.map(async ({ sender, firstUse = async () => 'own' }) => [
    sender.agentUrl,
    (await firstUse()) ?? 'may',
  ]);
  return Object.fromEntries(await Promise.all(said)) as object;
}

const sharedWith = ({ sender }: Seller): unknown => expect.stringContaining(`by ${sender.agentUrl} too`);
const waitsFor = ({ sender }: Seller): unknown =>
  expect.stringContaining(`${sender.agentUrl} has to be asked first`);

/** Two sellers whose documents are held, and whose keys were used. */
async function two(limits: Parameters<typeof setup>[0] = {}) {
  const [one, other] = [await startSeller(), await startSeller()];
  const [first, second] = [publicJwk('one'), publicJwk('other')];
  one.server.serve(JWKS_PATH, { keys: [first] }, SHORT);
  other.server.serve(JWKS_PATH, { keys: [second] }, SHORT);
  const senders = [one.sender, other.sender];
  const bench = await setup(limits);
  for (const keyid of ['one', 'other', 'one', 'other']) await used(bench, keyid, ...senders);
  const rotate = (seller: Seller, ...keys: readonly Jwk[]): void => {
    seller.server.serve(JWKS_PATH, { keys }, SHORT);
  };
  return { bench, one, other, senders, first, second, rotate };
}

describe('before the first use of a key the other senders at its URL are asked', () => {
  test('once, for any number of deliveries that wait', async () => {
    const [one, other] = [await startSeller(publicJwk('one')), await startSeller(publicJwk('other'))];
    const bench = await setup();
    const senders = [one.sender, other.sender];
    await bench.keys.find('one', { senders, arrivedAt: bench.now() });
    const held = gate(sends(JSON.stringify({ keys: [publicJwk('other')] })));
    other.server.answer(JWKS_PATH, held.answerer);
    const waiting = Array.from({ length: 50 }, () => used(bench, 'one', ...senders));
    await other.server.asked(JWKS_PATH, 2);
    held.open();
    for (const each of waiting) expect(await each).toEqual({ [one.sender.agentUrl]: 'may' });
    expect(other.server.count(JWKS_PATH)).toBe(2);
  });

  test('once; afterwards the answer is synchronous', async () => {
    const { bench, one, other, senders } = await two();
    const before = other.server.count();
    expect(bench.keys.find('one', { senders, arrivedAt: bench.now() })).toEqual({
      candidates: [{ sender: one.sender, key: expect.objectContaining({ kid: 'one' }) as unknown }],
      undecided: [],
    });
    bench.advance(MINUTE);
    expect(await used(bench, 'one', ...senders)).toEqual({ [one.sender.agentUrl]: 'own' });
    expect(other.server.count()).toBe(before);
  });

  test('a document fetched after the key was seen decides for all keys seen with it', async () => {
    const { bench, one, other, senders, first, rotate } = await two();
    const keys = Array.from({ length: 20 }, (_, index) => publicJwk(`next-${index}`));
    rotate(one, first, ...keys);
    bench.advance(MINUTE);
    await used(bench, 'one', ...senders);
    const before = other.server.count(JWKS_PATH);
    for (const { kid } of keys) {
      expect(await used(bench, String(kid), ...senders)).toEqual({ [one.sender.agentUrl]: 'may' });
    }
    expect(other.server.count(JWKS_PATH)).toBe(before + 1);
  });

  test('a sender that comes to the URL later is asked too', async () => {
    const { bench, one, other, senders, first } = await two();
    const third = await startSeller(first);
    expect(await used(bench, 'one', ...senders)).toEqual({ [one.sender.agentUrl]: 'own' });
    expect(await used(bench, 'one', one.sender, other.sender, third.sender)).toMatchObject({
      [one.sender.agentUrl]: sharedWith(third),
    });
  });

  test('no other is asked at a URL with one sender', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    expect(await used(bench, 'k', seller.sender)).toEqual({ [seller.sender.agentUrl]: 'own' });
    expect(seller.server.count()).toBe(2);
  });

  test('on workerd each request asks for itself, and the answer is kept', async () => {
    onWorkerd();
    const { bench, one, senders } = await two();
    expect(await used(bench, 'one', ...senders)).toEqual({ [one.sender.agentUrl]: 'own' });
  });
});

describe('a sender that does not answer', () => {
  afterEach(() => void vi.useRealTimers());

  /** What came of it where so much time passes after the other sender was asked, and none before. */
  async function usedLate(
    { bench, other, senders }: Awaited<ReturnType<typeof two>>,
    keyid: string,
    ms: number,
  ): Promise<object> {
    const before = other.server.count(JWKS_PATH);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const using = used(bench, keyid, ...senders);
    await other.server.asked(JWKS_PATH, before + 1);
    await vi.advanceTimersByTimeAsync(ms);
    return using;
  }

  test('is waited for until its fetch ends: 503 meanwhile, and the retry is accepted', async () => {
    const made = await two({ limits: { deliveryMs: 5_000, deadlineMs: 60_000 } });
    const { bench, one, other, senders, second, rotate } = made;
    rotate(one, publicJwk('next'));
    const held = gate(sends(JSON.stringify({ keys: [second] })));
    bench.advance(MINUTE);
    await used(bench, 'one', one.sender);
    other.server.answer(JWKS_PATH, held.answerer);
    expect(await usedLate(made, 'next', 5_000)).toEqual({ [one.sender.agentUrl]: waitsFor(other) });
    vi.useRealTimers();
    held.open();
    await expect
      .poll(() => used(bench, 'next', ...senders), PATIENT)
      .toEqual({ [one.sender.agentUrl]: 'own' });
    expect(bench.alarmsOf('key_owner_unchecked')).toEqual([]);
  });

  test('delays no other for longer than one fetch may take', async () => {
    const made = await two({ limits: { deliveryMs: 60_000, deadlineMs: 5_000 } });
    const { bench, one, other, rotate } = made;
    rotate(one, publicJwk('next'));
    bench.advance(MINUTE);
    await used(bench, 'one', one.sender);
    other.server.answer(JWKS_PATH, () => undefined);
    expect(await usedLate(made, 'next', 5_000)).toEqual({ [one.sender.agentUrl]: 'may' });
    expect(bench.alarmsOf('key_owner_unchecked')).toMatchObject([
      { sender: one.sender.agentUrl, other: other.sender.agentUrl, keyid: 'next' },
    ]);
  });

  test('delays no other when its fetch fails, and is asked again in the background', async () => {
    const { bench, one, other, senders, second, rotate } = await two();
    const next = publicJwk('next');
    rotate(one, next);
    bench.advance(MINUTE);
    await used(bench, 'one', one.sender);
    other.server.answer(JWKS_PATH, (_req, res) => res.writeHead(502).end());
    const may = { [one.sender.agentUrl]: 'may' };
    expect(await used(bench, 'next', ...senders)).toEqual(may);
    expect(bench.alarmsOf('key_owner_unchecked')).toHaveLength(1);
    const before = other.server.count(JWKS_PATH);
    expect(await used(bench, 'next', ...senders)).toEqual(may);
    expect(other.server.count(JWKS_PATH)).toBe(before);
    const held = gate(sends(JSON.stringify({ keys: [second, next] })));
    other.server.answer(JWKS_PATH, held.answerer);
    bench.advance(30_000);
    expect(await used(bench, 'next', one.sender, other.sender)).toEqual(may);
    held.open();
    await expect
      .poll(() => used(bench, 'next', ...senders), PATIENT)
      .toMatchObject({ [one.sender.agentUrl]: sharedWith(other) });
  });

  test('counts by its earlier copy when that has the key', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    rotate(other, second, next);
    bench.advance(MINUTE);
    await used(bench, 'other', ...senders);
    rotate(one, first, next);
    bench.advance(MINUTE);
    other.server.answer(JWKS_PATH, (_req, res) => res.writeHead(502).end());
    await used(bench, 'one', one.sender);
    expect(await used(bench, 'next', ...senders)).toMatchObject({ [one.sender.agentUrl]: sharedWith(other) });
  });
});

describe('when two senders publish one key', () => {
  test('neither can use it, until the other has removed it', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    rotate(one, first, next);
    rotate(other, second, next);
    bench.advance(MINUTE);
    await used(bench, 'one', ...senders);
    await used(bench, 'other', ...senders);
    const neither = { [one.sender.agentUrl]: sharedWith(other), [other.sender.agentUrl]: sharedWith(one) };
    expect(await used(bench, 'next', ...senders)).toEqual(neither);
    expect(bench.alarmsOf('key_shared').map(({ sender }) => sender)).toEqual(
      expect.arrayContaining([one.sender.agentUrl, other.sender.agentUrl]),
    );
    rotate(other, second);
    bench.advance(30_000);
    await expect
      .poll(() => used(bench, 'next', ...senders), PATIENT)
      .toMatchObject({ [one.sender.agentUrl]: 'own' });
  });

  test('the sender that has used it keeps it, and an alarm names the other', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    rotate(other, second, first);
    bench.advance(MINUTE);
    await used(bench, 'other', ...senders);
    // Its own is the first candidate, so that the other is asked about nothing.
    expect(await bench.keys.find('one', { senders, arrivedAt: bench.now() })).toMatchObject({
      candidates: [{ sender: one.sender }, { sender: other.sender }],
    });
    await expect
      .poll(() => bench.alarmsOf('key_shared'), PATIENT)
      .toMatchObject([{ sender: other.sender.agentUrl, other: one.sender.agentUrl, keyid: 'one' }]);
    expect(await used(bench, 'one', ...senders)).toEqual({
      [one.sender.agentUrl]: 'own',
      [other.sender.agentUrl]: sharedWith(one),
    });
  });

  test('a sender that delays its answer until the other has published was not first', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    const dripping = gate(sends(JSON.stringify({ keys: [second, next] })));
    other.server.answer(JWKS_PATH, dripping.answerer);
    bench.advance(MINUTE);
    const begun = other.server.count(JWKS_PATH);
    const late = used(bench, 'other', other.sender);
    await other.server.asked(JWKS_PATH, begun + 1);
    // Begun later, and without the key: it was not there when the other's answer began.
    await used(bench, 'one', one.sender);
    rotate(one, first, next);
    dripping.open();
    await late;
    expect(await used(bench, 'next', ...senders)).toMatchObject({ [other.sender.agentUrl]: sharedWith(one) });
  });

  test('a 304, or a cached answer, does not prove that a key is absent', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    one.server.answer(JWKS_PATH, (req, res) => {
      if (req.headers['if-none-match'] === '"same"') res.writeHead(304).end();
      else res.writeHead(200, { ...SHORT, etag: '"same"' }).end(JSON.stringify({ keys: [first] }));
    });
    bench.advance(MINUTE);
    await used(bench, 'one', one.sender);
    one.server.answer(JWKS_PATH, (req, res) => {
      if (req.headers['if-none-match'] === '"same"') res.writeHead(304).end();
      else res.writeHead(200, SHORT).end(JSON.stringify({ keys: [first, next] }));
    });
    rotate(other, second, next);
    bench.advance(MINUTE);
    await used(bench, 'other', other.sender);
    await used(bench, 'one', one.sender);
    expect(await used(bench, 'next', ...senders)).toMatchObject({ [other.sender.agentUrl]: sharedWith(one) });
  });

  test('a cooldown that others caused does not prevent asking', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    rotate(other, second, next);
    bench.advance(MINUTE - 1_000);
    await used(bench, 'made up', one.sender);
    rotate(one, first, next);
    bench.advance(1_000);
    await used(bench, 'other', other.sender);
    expect(await used(bench, 'next', ...senders)).toMatchObject({ [other.sender.agentUrl]: sharedWith(one) });
    // And brings none about: a key that is new is found at once.
    rotate(one, first, next, publicJwk('newest'));
    bench.advance(29_500);
    expect(await used(bench, 'newest', ...senders)).toEqual({ [one.sender.agentUrl]: 'may' });
  });

  test('members that no engine reads do not make it another key', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    rotate(other, second, { ...first, y: 'x', alg: 'EdDSA', use: 'sig', note: 'mine' });
    bench.advance(MINUTE);
    await used(bench, 'other', ...senders);
    expect(await used(bench, 'one', ...senders)).toMatchObject({
      [other.sender.agentUrl]: sharedWith(one),
    });
  });

  test('two keys under one kid are independent: each sender signs with its own', async () => {
    const { bench, one, other, senders, second, rotate } = await two();
    rotate(other, second, publicJwk('one'));
    bench.advance(MINUTE);
    await used(bench, 'other', ...senders);
    expect(await used(bench, 'one', ...senders)).toEqual({
      [one.sender.agentUrl]: 'own',
      [other.sender.agentUrl]: 'may',
    });
    expect(bench.alarmsOf('key_shared')).toEqual([]);
  });

  test('a key that the other publishes beside another one under its kid is shared too', async () => {
    const { bench, one, other, senders, first, second, rotate } = await two();
    const next = publicJwk('next');
    rotate(one, first, next);
    rotate(other, second, next, publicJwk('next'));
    bench.advance(MINUTE);
    await used(bench, 'one', one.sender);
    expect(await used(bench, 'next', ...senders)).toEqual({ [one.sender.agentUrl]: sharedWith(other) });
  });

  test('two agents with one JWKS cannot be told apart: neither uses its keys', async () => {
    const seller = await startSeller(publicJwk('k'));
    const agents = ['mcp', 'a2a'].map((name) => `${seller.server.origin}/${name}`);
    seller.server.serve(BRAND, { agents: agents.map((url) => ({ url })) });
    const bench = await setup();
    const said = await used(bench, 'k', ...agents.map((url) => senderEntry(url)));
    expect(Object.values(said)).toEqual([expect.any(String), expect.any(String)]);
  });
});

describe('pins', () => {
  test('a configured pin belongs to its sender, also when others publish it', async () => {
    const key = publicJwk('k');
    const thief = await startSeller(key);
    const pinned = senderEntry('https://pinned.example/mcp', { pins: [key] });
    const bench = await setup();
    await used(bench, 'k', thief.sender);
    expect(await used(bench, 'k', thief.sender, pinned)).toEqual({
      [thief.sender.agentUrl]: expect.stringContaining(`by ${pinned.agentUrl} too`),
      [pinned.agentUrl]: 'may',
    });
    expect(bench.alarmsOf('key_shared')).toMatchObject([{ sender: thief.sender.agentUrl }]);
  });

  test('a sender with pins is not fetched: its keys are the pins', async () => {
    const one = await startSeller(publicJwk('new'));
    const pinned = await startSeller();
    const bench = await setup();
    const senders = [one.sender, { ...pinned.sender, pins: [publicJwk('own')] }];
    expect(await used(bench, 'new', ...senders)).toEqual({ [one.sender.agentUrl]: 'may' });
    expect(pinned.server.count()).toBe(0);
  });

  test('a key that is pinned for two senders belongs to neither', async () => {
    const key = publicJwk('k');
    const both = ['https://a.example/', 'https://b.example/'].map((url) => senderEntry(url, { pins: [key] }));
    expect(Object.values(await used(await setup(), 'k', ...both))).toEqual([
      expect.stringContaining('https://b.example/ too'),
      expect.stringContaining('https://a.example/ too'),
    ]);
  });

  test('a key that a publisher lists counts as published', async () => {
    const key = publicJwk('k');
    const [seller, publisher] = [await startSeller(key), await startKeyServer()];
    const other = await startSeller(publicJwk('other'));
    const listed = { url: other.sender.agentUrl, signing_keys: [key] };
    publisher.serve(PINS, { authorized_agents: [listed] });
    const pinned = { ...other.sender, publishers: [publisher.host] };
    expect(await used(await setup(), 'k', seller.sender, pinned)).toEqual({
      [seller.sender.agentUrl]: sharedWith(other),
      [pinned.agentUrl]: sharedWith(seller),
    });
  });

  test('when a publisher’s file is unavailable the JWKS is still fetched', async () => {
    const key = publicJwk('k');
    const [seller, publisher] = [await startSeller(key), await startKeyServer()];
    const other = await startSeller(publicJwk('other'));
    const pinned = { ...other.sender, publishers: [publisher.host] };
    publisher.answer(PINS, (_req, res) => res.writeHead(502).end());
    const bench = await setup();
    expect(await used(bench, 'k', seller.sender, pinned)).toEqual({ [seller.sender.agentUrl]: 'may' });
    expect(bench.alarmsOf('key_owner_unchecked')).toHaveLength(1);
    const thief = { ...(await startSeller(key)).sender, publishers: [publisher.host] };
    expect(await used(await setup(), 'k', seller.sender, thief)).toMatchObject({
      [seller.sender.agentUrl]: expect.stringContaining(`by ${thief.agentUrl} too`),
    });
  });
});

/** A minute: the shortest life that a JWKS may have. */
const LONG = { 'cache-control': 'max-age=1800' };

const publish = ({ server }: Seller, headers: Readonly<Record<string, string>>, ...keys: KeyPair[]): void => {
  server.serve(JWKS_PATH, { keys: keys.map(({ publicJwk: jwk }) => jwk) }, headers);
};

/** Two sellers at one URL, each with a key that was used, and the next key of the first. */
async function twoSellers(order: 'victim first' | 'thief first' = 'thief first') {
  const [victim, thief] = [await startSeller(), await startSeller()];
  const [old, own, next] = [await keyNamed('2026-a'), await keyNamed('own'), await keyNamed('2026-b')];
  publish(victim, LONG, old);
  publish(thief, SHORT, own);
  const sellers = order === 'victim first' ? [victim, thief] : [thief, victim];
  const bench = deliveryBench(...sellers.map(({ sender: { agentUrl } }) => ({ agentUrl })));
  expect(await bench.deliver(old)).toBe(ACCEPTED);
  expect(await bench.deliver(own)).toBe(ACCEPTED);
  return { bench, victim, thief, old, own, next };
}

const deliver = async (bench: DeliveryBench, key: KeyPair): Promise<Outcome> =>
  bench.send(await bench.sign(key));

const both = (...sellers: readonly Seller[]): unknown =>
  expect.objectContaining({
    sender: expect.any(String) as unknown,
    message: expect.stringMatching(
      new RegExp(sellers.map(({ sender }) => `(?=.*${sender.agentUrl})`).join('')),
    ) as unknown,
  });

describe('a registered seller that publishes another seller’s key gets none of its events (verification.md §2.36)', () => {
  test.each(['victim first', 'thief first'] as const)(
    'during a rotation, while the victim’s copy lacks the new key, 5 of 5 (%s)',
    async (order) => {
      const { bench, victim, thief, old, own, next } = await twoSellers(order);
      publish(victim, LONG, old, next);
      publish(thief, SHORT, own, next);
      bench.advance(MINUTE);
      // Its own delivery brings the thief's new set; the victim's copy is fresh.
      expect(await bench.deliver(own)).toBe(ACCEPTED);
      for (let event = 0; event < 5; event += 1) {
        const outcome = await deliver(bench, next);
        expect([outcome.kind, outcome.sender]).not.toEqual(['accepted', thief.sender.agentUrl]);
        expect(said(outcome)).toBe(UNAVAILABLE);
      }
      expect(bench.alarmsOf('key_shared')).toContainEqual(both(thief, victim));
    },
  );

  test('the seller whose key was known first keeps it, and the alarm names both', async () => {
    const { bench, victim, thief, old, own, next } = await twoSellers();
    publish(victim, SHORT, old, next);
    bench.advance(30 * MINUTE);
    expect(await bench.deliver(old)).toBe(ACCEPTED);
    // After the victim's new set the thief's is fetched, still without it.
    bench.advance(MINUTE);
    expect(await bench.deliver(own)).toBe(ACCEPTED);
    publish(thief, SHORT, own, next);
    bench.advance(MINUTE);
    expect(await bench.deliver(own)).toBe(ACCEPTED);
    for (let event = 0; event < 5; event += 1) {
      const outcome = await deliver(bench, next);
      expect([said(outcome), outcome.sender]).toEqual([ACCEPTED, victim.sender.agentUrl]);
    }
    expect(bench.alarmsOf('key_shared')).toContainEqual(both(thief, victim));
  });
});
