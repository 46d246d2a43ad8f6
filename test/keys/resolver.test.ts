import { describe, expect, test } from 'vitest';
import { defaultFetch, type KeySearch } from '../../src/keys/for-tests.ts';
import type { KeyFetch } from '../../src/index.ts';
import { gate, sends, startKeyServer } from './key-server.ts';
import {
  type Bench,
  BRAND,
  JWKS_PATH,
  MINUTE,
  publicJwk,
  type Seller,
  senderEntry,
  setup,
  startSeller,
} from './setup.ts';

/** Agent URL and `x` of each candidate, and whether anything is undecided. */
function told(search: KeySearch): { found: unknown[][]; undecided: number } {
  return {
    found: search.candidates.map(({ sender, key }) => [sender.agentUrl, key.jwk['x']]),
    undecided: search.undecided.length,
  };
}

const UNKNOWN = { found: [], undecided: 0 };
const UNDECIDED = { found: [], undecided: 1 };

async function find(bench: Bench, keyid: string, ...sellers: readonly Seller[]): Promise<unknown> {
  const senders = sellers.map(({ sender }) => sender);
  return told(await bench.keys.find(keyid, { senders, arrivedAt: bench.now() }));
}

test('each document is fetched on behalf of its seller', async () => {
  const seller = await startSeller(publicJwk('k'));
  const publisher = await startKeyServer();
  publisher.serve('/.well-known/adagents.json', { authorized_agents: [] });
  const fetched: (string | undefined)[][] = [];
  const transport: KeyFetch = (url, init) => {
    fetched.push([new URL(url).pathname, init.seller]);
    return defaultFetch(true)(url, init);
  };
  const { keys, now } = await setup({ fetch: transport });
  const sender = { ...seller.sender, publishers: [publisher.host] };
  await keys.find('k', { senders: [sender], arrivedAt: now() });
  await keys.revocation(sender, 'k');
  expect(fetched).toEqual(
    [
      '/.well-known/adagents.json',
      BRAND,
      JWKS_PATH,
      '/.well-known/proto-revocations.json',
      '/.well-known/governance-revocations.json',
      '/.well-known/adcp-revocations.json',
    ].map((path) => [path, sender.agentUrl]),
  );
});

describe('find', () => {
  test('brand.json, jwks_uri, JWKS, JWK: cold, with the imported key', async () => {
    const jwk = publicJwk('k');
    const { server, sender } = await startSeller();
    const jwksUri = `${server.origin}/keys`;
    server.serve(BRAND, { house: { agents: [{ url: sender.agentUrl, jwks_uri: jwksUri }] } });
    server.serve('/keys', { keys: [jwk] });
    const { keys, now } = await setup();
    const search = await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(search).toMatchObject({
      candidates: [{ sender, key: { kid: 'k', jwk, verifyKey: { alg: 'ed25519' } } }],
      undecided: [],
    });
    expect(server.count(JWKS_PATH)).toBe(0);
  });

  test('a known key is found without any fetch', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    const first = await find(bench, 'k', seller);
    expect(await find(bench, 'k', seller)).toEqual(first);
    expect(seller.server.count()).toBe(2);
  });

  test('fresh documents that were used before give the key synchronously', async () => {
    const [signer, another] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('other'))];
    const senders = [another.sender, signer.sender];
    const { keys, now, advance } = await setup();
    const found = { candidates: [{ sender: signer.sender, key: { kid: 'k' } }], undecided: [] };
    expect(await keys.find('k', { senders, arrivedAt: now() })).toMatchObject(found);
    expect(keys.find('k', { senders, arrivedAt: now() })).toMatchObject(found);
    expect(signer.server.count() + another.server.count()).toBe(4);
    advance(6 * MINUTE);
    signer.publish(publicJwk('new'));
    expect(keys.find('k', { senders, arrivedAt: now() })).toBeInstanceOf(Promise);
    // Past its life the set is asked for again, and has the key no longer.
    expect(told(await keys.find('k', { senders, arrivedAt: now() }))).toEqual(UNKNOWN);
  });

  test('their use near the end of their life begins a refresh without waiting', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { keys, now, advance } = await setup();
    await keys.find('k', { senders: [seller.sender], arrivedAt: now() });
    advance(4.5 * MINUTE);
    expect(keys.find('k', { senders: [seller.sender], arrivedAt: now() })).toMatchObject({
      candidates: [{ key: { kid: 'k' } }],
    });
    await expect.poll(() => seller.server.count(BRAND) + seller.server.count(JWKS_PATH)).toBe(4);
  });

  test('500 cold deliveries cause one brand.json and one JWKS fetch', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    const all = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        find(bench, index % 2 === 0 ? 'k' : `unknown-${index}`, seller),
      ),
    );
    expect(all.filter((one) => JSON.stringify(one) === JSON.stringify(UNKNOWN))).toHaveLength(250);
    expect(seller.server.count(BRAND)).toBe(1);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('a keyid that a fetch begun after the arrival lacks is unknown: 401', async () => {
    const bench = await setup();
    expect(await find(bench, 'x', await startSeller(publicJwk('k')))).toEqual(UNKNOWN);
  });

  test('a key that was added is found by one refetch', async () => {
    const seller = await startSeller(publicJwk('old'));
    const bench = await setup();
    await find(bench, 'old', seller);
    seller.publish(publicJwk('old'), publicJwk('new'));
    expect(await find(bench, 'new', seller)).toMatchObject({
      found: [[seller.sender.agentUrl, expect.any(String)]],
    });
    expect(seller.server.count(JWKS_PATH)).toBe(2);
    expect(seller.server.count(BRAND)).toBe(1);
  });

  test('while a refetch cools down an unknown keyid is undecided: 503, and found later', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    expect(await find(bench, 'x', seller)).toEqual(UNKNOWN);
    bench.advance(1);
    seller.publish(publicJwk('k'), publicJwk('new'));
    for (let index = 0; index < 50; index += 1)
      expect(await find(bench, `x${index}`, seller)).toEqual(UNDECIDED);
    expect(await find(bench, 'new', seller)).toEqual(UNDECIDED);
    expect(await find(bench, 'k', seller)).toMatchObject({
      found: [[seller.sender.agentUrl, expect.any(String)]],
    });
    expect(seller.server.count(JWKS_PATH)).toBe(2);
    bench.advance(30_000);
    expect(await find(bench, 'new', seller)).toMatchObject({ undecided: 0, found: [expect.anything()] });
    expect(await find(bench, 'x', seller)).toEqual(UNDECIDED);
  });

  test('does not decide by a fetch that began before the delivery arrived', async () => {
    const seller = await startSeller();
    const held = gate(sends(JSON.stringify({ keys: [publicJwk('k')] })));
    seller.server.answer(JWKS_PATH, held.answerer);
    const bench = await setup();
    const first = find(bench, 'x', seller);
    await seller.server.asked(JWKS_PATH, 1);
    bench.advance(1);
    const second = find(bench, 'x', seller);
    held.open();
    expect(await first).toEqual(UNKNOWN);
    // Joined the fetch of the first, which was the one that is allowed in 30 s.
    expect(await second).toEqual(UNDECIDED);
  });

  test('decides by one that another delivery began after the arrival', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    const arrivedAt = bench.now();
    bench.advance(1);
    expect(await find(bench, 'x', seller)).toEqual(UNKNOWN);
    expect(told(await bench.keys.find('x', { senders: [seller.sender], arrivedAt }))).toEqual(UNKNOWN);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('does not decide by a 304, which says nothing of a key that the copy lacks', async () => {
    const seller = await startSeller();
    const [old, added] = [publicJwk('k'), publicJwk('new')];
    const etag = { etag: '"v1"' };
    seller.server.serve(JWKS_PATH, { keys: [old] }, etag);
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(6 * MINUTE);
    const arrivedAt = bench.now();
    bench.advance(1);
    // The seller's cache answers conditions by an ETag that is no longer true.
    const whole = sends(JSON.stringify({ keys: [old, added] }), etag);
    seller.server.answer(JWKS_PATH, (req, res) => {
      if (req.headers['if-none-match'] === undefined) whole(req, res);
      else res.writeHead(304).end();
    });
    await find(bench, 'k', seller);
    expect(seller.server.count(JWKS_PATH)).toBe(2);
    const search = await bench.keys.find('new', { senders: [seller.sender], arrivedAt });
    expect(told(search)).toMatchObject({ undecided: 0, found: [expect.anything()] });
  });

  test('cold cache and outage: undecided, and found when the seller is back', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    seller.server.answer(JWKS_PATH, (_req, res) => res.writeHead(502).end());
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
    seller.publish(publicJwk('k'));
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
    bench.advance(1000);
    expect(await find(bench, 'k', seller)).toMatchObject({ undecided: 0, found: [expect.anything()] });
  });

  test('known key and outage: accepted within the hard limit, undecided beyond it', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    const first = await find(bench, 'k', seller);
    await seller.server.close();
    bench.advance(30 * MINUTE - 1);
    expect(await find(bench, 'k', seller)).toEqual(first);
    expect(await find(bench, 'new', seller)).toEqual(UNDECIDED);
    bench.advance(1);
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
  });

  test('a removed key is unknown once the copy is past its life', async () => {
    const seller = await startSeller(publicJwk('old'), publicJwk('k'));
    const bench = await setup();
    await find(bench, 'old', seller);
    seller.publish(publicJwk('k'));
    bench.advance(5 * MINUTE);
    expect(await find(bench, 'old', seller)).toEqual(UNKNOWN);
  });

  test.each([
    ['HTML', '<!doctype html><title>404</title>'],
    ['a kid twice', JSON.stringify({ keys: [publicJwk('k'), publicJwk('k')] })],
    ['over the cap', JSON.stringify({ keys: [publicJwk('k')], pad: 'x'.repeat(65_536) })],
    ['a duplicate key', '{"keys":[],"keys":[]}'],
  ])('a broken JWKS (%s): undecided where there was none, else the previous stays', async (_what, body) => {
    const cold = await startSeller();
    cold.server.answer(JWKS_PATH, sends(body));
    const bench = await setup();
    expect(await find(bench, 'k', cold)).toEqual(UNDECIDED);
    const warm = await startSeller(publicJwk('k'));
    const first = await find(bench, 'k', warm);
    warm.server.answer(JWKS_PATH, sends(body));
    bench.advance(6 * MINUTE);
    expect(await find(bench, 'k', warm)).toEqual(first);
    expect(bench.alarms).toHaveLength(2);
  });

  test('brand.json up to 2 MiB, JWKS up to 64 KiB', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { agentUrl } = seller.sender;
    const brand = { agents: [{ url: agentUrl }], pad: '' };
    brand.pad = 'x'.repeat(2_097_152 - JSON.stringify(brand).length);
    seller.server.serve(BRAND, brand);
    const jwks = { keys: [publicJwk('k')], pad: '' };
    jwks.pad = 'x'.repeat(65_536 - JSON.stringify(jwks).length);
    seller.server.serve(JWKS_PATH, jwks);
    expect(await find(await setup(), 'k', seller)).toMatchObject({
      undecided: 0,
      found: [expect.anything()],
    });
    seller.server.serve(BRAND, { ...brand, pad: `${brand.pad}x` });
    expect(await find(await setup(), 'k', seller)).toEqual(UNDECIDED);
  });
});

describe('brand.json', () => {
  test('no entry: undecided, alarm; asked again under the cooldown, and found when it is listed', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    seller.server.serve(BRAND, { agents: [{ url: `${seller.sender.agentUrl}/` }] });
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
    expect(bench.alarms).toMatchObject([
      { code: 'agent_not_listed', nearMisses: [`${seller.sender.agentUrl}/`] },
    ]);
    for (let index = 0; index < 20; index += 1) await find(bench, 'k', seller);
    expect(seller.server.count(BRAND)).toBe(2);
    expect(seller.server.count(JWKS_PATH)).toBe(0);
    seller.server.serve(BRAND, { agents: [{ url: seller.sender.agentUrl }] });
    bench.advance(30_000);
    expect(await find(bench, 'k', seller)).toMatchObject({ undecided: 0, found: [expect.anything()] });
  });

  test('an ambiguous entry: undecided, alarm', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { agentUrl } = seller.sender;
    const entry = { url: agentUrl, jwks_uri: `${seller.server.origin}/other` };
    seller.server.serve(BRAND, { agents: [{ url: agentUrl }], brands: [{ agents: [entry] }] });
    const bench = await setup();
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
    expect(bench.alarmsOf('agent_not_listed')).toHaveLength(1);
  });

  test('the pointer to a house is followed over HTTP', async () => {
    const house = await startKeyServer();
    const seller = await startSeller(publicJwk('k'));
    seller.server.serve(BRAND, { house: house.host });
    house.serve(BRAND, { agents: [{ url: seller.sender.agentUrl }] });
    expect(await find(await setup(), 'k', seller)).toMatchObject({
      undecided: 0,
      found: [expect.anything()],
    });
    expect(house.count(BRAND)).toBe(1);
  });

  test('a moved jwks_uri is learned when brand.json is past its life, with an alarm', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    const jwksUri = `${seller.server.origin}/moved`;
    seller.server.serve(BRAND, { agents: [{ url: seller.sender.agentUrl, jwks_uri: jwksUri }] });
    seller.server.serve('/moved', { keys: [publicJwk('new')] });
    expect(await find(bench, 'new', seller)).toEqual(UNKNOWN);
    expect(seller.server.count(BRAND)).toBe(1);
    bench.advance(5 * MINUTE);
    expect(await find(bench, 'new', seller)).toMatchObject({ undecided: 0, found: [expect.anything()] });
    expect(bench.alarmsOf('jwks_uri_moved')).toMatchObject([{ sender: seller.sender.agentUrl, jwksUri }]);
  });

  test('a jwks_uri that is not https is not fetched', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup({ allowLoopback: false, fetch: (url, init) => fetch(url, init) });
    expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
    expect(seller.server.count()).toBe(0);
  });
});

describe('several senders on one endpoint', () => {
  test('all who are known to publish the kid are candidates, in their order', async () => {
    const [a, b, c] = [
      await startSeller(publicJwk('k')),
      await startSeller(publicJwk('k')),
      await startSeller(),
    ];
    const bench = await setup();
    for (const seller of [a, b, c]) await find(bench, 'k', seller);
    const search = await find(bench, 'k', c, b, a);
    expect(search).toMatchObject({
      undecided: 0,
      found: [
        [b.sender.agentUrl, expect.any(String)],
        [a.sender.agentUrl, expect.any(String)],
      ],
    });
  });

  test('a sender without cached documents does not delay one whose key is known', async () => {
    const known = await startSeller(publicJwk('k'));
    const cold = await startSeller();
    cold.server.answer(BRAND, gate(sends('{}')).answerer);
    const bench = await setup();
    await find(bench, 'k', known);
    expect(await find(bench, 'k', cold, known)).toMatchObject({
      found: [[known.sender.agentUrl, expect.any(String)]],
    });
    expect(cold.server.count()).toBe(0);
  });

  test('a sender that does not answer does not delay one whose key is new', async () => {
    const fine = await startSeller(publicJwk('k'));
    const hangs = await startSeller();
    hangs.server.answer(BRAND, gate(sends('{}')).answerer);
    const bench = await setup({ limits: { graceMs: 1 } });
    expect(await find(bench, 'k', hangs, fine)).toMatchObject({
      found: [[fine.sender.agentUrl, expect.any(String)]],
    });
  });

  test('an unavailable sender leaves an unknown keyid undecided', async () => {
    const fine = await startSeller(publicJwk('k'));
    const down = await startSeller();
    await down.server.close();
    expect(await find(await setup(), 'x', fine, down)).toEqual(UNDECIDED);
  });

  test('a sender that was left out comes first the next time, after the others’ cooldown too', async () => {
    const server = await startKeyServer();
    const paths = Array.from({ length: 80 }, (_, index) => `/${index}/mcp`);
    server.serve(BRAND, {
      agents: paths.map((path) => ({ url: server.origin + path, jwks_uri: `${server.origin}${path}/keys` })),
    });
    for (const path of paths) server.serve(`${path}/keys`, { keys: [] });
    server.serve('/79/mcp/keys', { keys: [publicJwk('k')] });
    const { keys, now, advance } = await setup();
    const found: number[] = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      // Other objects each time, as a `senders` function may give them.
      const senders = paths.map((path) => senderEntry(server.origin + path));
      found.push((await keys.find('k', { senders, arrivedAt: now() })).candidates.length);
      advance(MINUTE);
    }
    expect(found).toEqual([0, 0, 1]);
  });

  test('at most 32 senders are fetched for one delivery, 8 at a time; the rest is undecided', async () => {
    const server = await startKeyServer();
    const paths = Array.from({ length: 50 }, (_, index) => `/${index}/mcp`);
    server.serve(BRAND, {
      agents: paths.map((path) => ({ url: server.origin + path, jwks_uri: `${server.origin}${path}/keys` })),
    });
    let running = 0;
    let most = 0;
    for (const path of paths) {
      server.answer(`${path}/keys`, (req, res) => {
        running += 1;
        most = Math.max(most, running);
        setImmediate(() => {
          running -= 1;
          sends('{"keys":[]}')(req, res);
        });
      });
    }
    const senders = paths.map((path) => senderEntry(server.origin + path));
    const { keys, now, advance } = await setup();
    const search = await keys.find('x', { senders, arrivedAt: now() });
    expect(search.candidates).toEqual([]);
    expect(search.undecided).toHaveLength(18);
    expect(server.count()).toBe(33);
    expect(most).toBeLessThanOrEqual(8);
    advance(1);
    // Those that cool down do not use up the next delivery's share.
    expect((await keys.find('x', { senders, arrivedAt: now() })).undecided).toHaveLength(32);
    expect(server.count()).toBe(51);
  });
});

describe('findReplaced', () => {
  async function replaced(bench: Bench, keyid: string, ...sellers: readonly Seller[]): Promise<unknown> {
    const senders = sellers.map(({ sender }) => sender);
    const { candidates } = await bench.keys.find(keyid, { senders, arrivedAt: bench.now() });
    return told(await bench.keys.findReplaced(keyid, { senders, arrivedAt: bench.now() }, candidates));
  }

  test('key material replaced under its kid: one forced refetch gives the new key', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(30_000);
    const next = publicJwk('k');
    seller.publish(next);
    expect(await replaced(bench, 'k', seller)).toEqual({
      found: [[seller.sender.agentUrl, next['x']]],
      undecided: 0,
    });
    expect(seller.server.count(JWKS_PATH)).toBe(2);
  });

  test('the same key again: decided', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(30_000);
    expect(await replaced(bench, 'k', seller)).toEqual(UNKNOWN);
    expect(seller.server.count(JWKS_PATH)).toBe(2);
  });

  test('a set fetched less than 30 s ago decides at once', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(29_999);
    expect(await replaced(bench, 'k', seller)).toEqual(UNKNOWN);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('a refetch that fails: undecided', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(30_000);
    await seller.server.close();
    expect(await replaced(bench, 'k', seller)).toEqual(UNDECIDED);
  });

  test('many forged deliveries cause one refetch in 30 s', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await find(bench, 'k', seller);
    bench.advance(30_000);
    await Promise.all(Array.from({ length: 50 }, () => replaced(bench, 'k', seller)));
    expect(seller.server.count(JWKS_PATH)).toBe(2);
  });

  test('another sender that publishes the same kid and was never fetched is fetched and tried', async () => {
    const [x, y] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('k'))];
    const bench = await setup();
    await find(bench, 'k', x);
    expect(await replaced(bench, 'k', x, y)).toMatchObject({
      found: [[y.sender.agentUrl, expect.any(String)]],
      undecided: 0,
    });
  });

  test('another sender fetched less than 30 s ago without the kid decides at once', async () => {
    const [x, y] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('other'))];
    const bench = await setup();
    await find(bench, 'k', x);
    await find(bench, 'other', y);
    expect(await replaced(bench, 'k', x, y)).toEqual(UNKNOWN);
    expect(y.server.count(JWKS_PATH)).toBe(1);
  });

  test('both searches of one delivery together fetch at most 32 senders', async () => {
    const server = await startKeyServer();
    const paths = Array.from({ length: 50 }, (_, index) => `/${index}/mcp`);
    server.serve(BRAND, {
      agents: paths.map((path) => ({ url: server.origin + path, jwks_uri: `${server.origin}${path}/keys` })),
    });
    for (const path of paths) server.serve(`${path}/keys`, { keys: [] });
    server.serve('/0/mcp/keys', { keys: [publicJwk('k')] });
    const senders = paths.map((path) => senderEntry(server.origin + path));
    const { keys, now } = await setup({ limits: { graceMs: 10_000 } });
    const request = { senders, arrivedAt: now() };
    const { candidates } = await keys.find('k', request);
    expect(candidates).toHaveLength(1);
    const again = await keys.findReplaced('k', request, candidates);
    expect(again.undecided).toHaveLength(18);
    expect(server.count()).toBe(33);
  });

  test('another sender that cannot be fetched: undecided', async () => {
    const [x, y] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('k'))];
    const bench = await setup();
    await find(bench, 'k', x);
    await y.server.close();
    expect(await replaced(bench, 'k', x, y)).toEqual(UNDECIDED);
  });
});

describe('a kid that two senders publish, one of them known from a copy past its life', () => {
  async function pastItsLife() {
    const [x, y] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('k'))];
    const bench = await setup();
    await find(bench, 'k', y);
    bench.advance(5 * MINUTE);
    await find(bench, 'k', x);
    const both = [
      [x.sender.agentUrl, expect.any(String)],
      [y.sender.agentUrl, expect.any(String)],
    ];
    return { x, y, bench, both };
  }

  test('is refreshed, so that the result does not depend on which copy is newer', async () => {
    const { x, y, bench, both } = await pastItsLife();
    expect(await find(bench, 'k', x, y)).toMatchObject({ found: both });
    expect(y.server.count(JWKS_PATH)).toBe(2);
    expect(await find(bench, 'k', y, x)).toMatchObject({ found: both.toReversed() });
  });

  test('or used unchanged when it cannot be refreshed', async () => {
    const { x, y, bench, both } = await pastItsLife();
    await y.server.close();
    expect(await find(bench, 'k', x, y)).toMatchObject({ found: both });
  });
});

describe('pins', () => {
  test('only the pin verifies: the JWKS is never consulted, another keyid is unknown at once', async () => {
    const seller = await startSeller(publicJwk('k'), publicJwk('other'));
    const pin = publicJwk('k');
    const sender = { ...seller.sender, pins: [pin] };
    const { keys, now } = await setup();
    await keys.warm([sender]);
    expect(told(await keys.find('k', { senders: [sender], arrivedAt: now() }))).toEqual({
      found: [[sender.agentUrl, pin['x']]],
      undecided: 0,
    });
    const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(told(await keys.findReplaced('k', { senders: [sender], arrivedAt: now() }, candidates))).toEqual(
      UNKNOWN,
    );
    expect(told(await keys.find('other', { senders: [sender], arrivedAt: now() }))).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
    // No document could have it, so that nothing is waited for; where another sender's could, they are asked.
    expect(keys.find('other', { senders: [sender], arrivedAt: now() })).toEqual({
      candidates: [],
      undecided: [],
    });
    const both = [sender, seller.sender];
    expect((await keys.find('other', { senders: both, arrivedAt: now() })).candidates).toMatchObject([
      { sender: seller.sender },
    ]);
  });

  test('a pinned sender does not hide another that publishes the same kid', async () => {
    const seller = await startSeller(publicJwk('k'));
    const pinned = senderEntry('https://pinned.example/', { pins: [publicJwk('k')] });
    const { keys, now } = await setup();
    const senders = [pinned, seller.sender];
    const { candidates } = await keys.find('k', { senders, arrivedAt: now() });
    expect(candidates.map(({ sender }) => sender)).toEqual([pinned]);
    const again = await keys.findReplaced('k', { senders, arrivedAt: now() }, candidates);
    expect(again.candidates.map(({ sender }) => sender)).toEqual([seller.sender]);
  });

  test('malformed pins from a function leave that sender undecided', async () => {
    const wrong = senderEntry('https://pinned.example/', { pins: [publicJwk('k'), publicJwk('k')] });
    const { keys, now } = await setup();
    expect(told(await keys.find('k', { senders: [wrong], arrivedAt: now() }))).toEqual(UNDECIDED);
    expect(told(await keys.findReplaced('k', { senders: [wrong], arrivedAt: now() }, []))).toEqual(UNDECIDED);
  });

  test('warm() reports a pin that never verifies, and check 8 refuses it', async () => {
    const { keys, alarms, now } = await setup();
    const sender = senderEntry('https://pinned.example/', { pins: [{ kid: 'bad', kty: 'oct', k: 'AA' }] });
    await keys.warm([sender]);
    expect(alarms).toMatchObject([
      {
        code: 'key_document_invalid',
        message: expect.stringContaining('https://pinned.example/: the key "bad"'),
      },
    ]);
    const { candidates } = await keys.find('bad', { senders: [sender], arrivedAt: now() });
    expect(candidates).toMatchObject([{ key: { kid: 'bad', verifyKey: expect.any(String) } }]);
  });
});

describe('warm', () => {
  test('starts fetching and waits for no fetch; the first delivery joins', async () => {
    const seller = await startSeller(publicJwk('k'));
    const held = gate(sends(JSON.stringify({ agents: [{ url: seller.sender.agentUrl }] })));
    seller.server.answer(BRAND, held.answerer);
    const bench = await setup();
    await bench.keys.warm([
      seller.sender,
      senderEntry('https://legacy.example/', { auth: { scheme: 'hmac', secrets: [] } }),
    ]);
    await seller.server.asked(BRAND, 1);
    const finding = find(bench, 'k', seller);
    held.open();
    expect(await finding).toMatchObject({ undecided: 0, found: [expect.anything()] });
    expect(seller.server.count(BRAND)).toBe(1);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('does not use up the refetch of a miss', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup();
    await bench.keys.warm([seller.sender]);
    await find(bench, 'k', seller);
    seller.publish(publicJwk('k'), publicJwk('new'));
    expect(await find(bench, 'new', seller)).toMatchObject({ undecided: 0, found: [expect.anything()] });
  });

  test('does not reject for an unavailable seller', async () => {
    const seller = await startSeller();
    await seller.server.close();
    const { keys } = await setup();
    await expect(keys.warm([seller.sender])).resolves.toBeUndefined();
  });
});

test('an unavailable engine leaves everything undecided, without throwing', async () => {
  const seller = await startSeller(publicJwk('k'));
  const bench = await setup({ engine: () => Promise.reject(new Error('no engine')) });
  expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
});

test('an alarm hook that throws has no effect', async () => {
  const seller = await startSeller();
  await seller.server.close();
  const bench = await setup({
    raiseAlarm: () => {
      throw new Error('hook');
    },
  });
  expect(await find(bench, 'k', seller)).toEqual(UNDECIDED);
});

test('after stop() cached keys are found, the rest is undecided', async () => {
  const [warm, cold] = [await startSeller(publicJwk('k')), await startSeller(publicJwk('k2'))];
  const bench = await setup();
  const first = await find(bench, 'k', warm);
  bench.keys.stop();
  expect(await find(bench, 'k', warm)).toEqual(first);
  expect(await find(bench, 'k2', cold)).toEqual(UNDECIDED);
  expect(bench.alarms).toEqual([]);
});
