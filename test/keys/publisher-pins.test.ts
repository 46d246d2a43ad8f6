import { describe, expect, test } from 'vitest';
import { isRevokedKey } from '../../src/auth/for-tests.ts';
import type { Jwk } from '../../src/index.ts';
import { type KeySearch, mapConcurrently } from '../../src/keys/for-tests.ts';
import { editionFor, type SenderEntry } from '../../src/for-tests.ts';
import { gate, type KeyServer, latch, sends, startKeyServer } from './key-server.ts';
import {
  type Bench,
  BRAND,
  JWKS_PATH,
  MINUTE,
  PATIENT,
  publicJwk,
  type Seller,
  setup,
  startSeller,
} from './setup.ts';

const ADAGENTS = '/.well-known/adagents.json';
const HOUR = 60 * MINUTE;

/** A publisher with adagents.json on a server of its own; `pin` replaces what it pins for an agent. */
interface Publisher {
  readonly server: KeyServer;
  readonly pin: (agentUrl: string, ...keys: readonly Jwk[]) => void;
}

async function startPublisher(agentUrl?: string, ...keys: readonly Jwk[]): Promise<Publisher> {
  const server = await startKeyServer();
  const pin: Publisher['pin'] = (url, ...signing_keys) => {
    const entry = { url, authorized_for: 'all', ...(signing_keys.length > 0 && { signing_keys }) };
    server.serve(ADAGENTS, { authorized_agents: [{ url: 'https://another.example/' }, entry] });
  };
  if (agentUrl !== undefined) pin(agentUrl, ...keys);
  return { server, pin };
}

const pinnedBy = (seller: Seller, ...publishers: readonly Publisher[]): SenderEntry => ({
  ...seller.sender,
  publishers: publishers.map(({ server }) => server.host),
});

const fetches = ({ server }: Publisher): number => server.count(ADAGENTS);

/** `x` of each candidate, and whether anything is undecided. */
function told({ candidates, undecided }: KeySearch): { keys: unknown[]; undecided: number } {
  return { keys: candidates.map(({ key }) => key.jwk['x']), undecided: undecided.length };
}

async function find(bench: Bench, keyid: string, sender: SenderEntry): Promise<unknown> {
  return told(await bench.keys.find(keyid, { senders: [sender], arrivedAt: bench.now() }));
}

async function replaced(bench: Bench, keyid: string, sender: SenderEntry): Promise<unknown> {
  const { candidates } = await bench.keys.find(keyid, { senders: [sender], arrivedAt: bench.now() });
  return told(
    await bench.keys.findReplaced(keyid, { senders: [sender], arrivedAt: bench.now() }, candidates),
  );
}

const FOUND = (...keys: readonly Jwk[]): object => ({ keys: keys.map(({ x }) => x), undecided: 0 });
const UNKNOWN = { keys: [], undecided: 0 };
const UNDECIDED = { keys: [], undecided: 1 };

describe('when a publisher pins, only its pins verify (verification.md §5.5)', () => {
  test("the key material is the pin's, and neither brand.json nor JWKS is consulted", async () => {
    const seller = await startSeller(publicJwk('k'), publicJwk('other'));
    const pin = publicJwk('k');
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin));
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(await replaced(bench, 'k', sender)).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
  });

  test('any other keyid is unknown, though the JWKS has it', async () => {
    const seller = await startSeller(publicJwk('k'), publicJwk('other'));
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, publicJwk('k')));
    expect(await find(await setup(), 'other', sender)).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
  });

  test('an entry without signing_keys, or none for this url byte for byte, leaves it to the JWKS', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const silent = await startPublisher(seller.sender.agentUrl);
    const slip = await startPublisher(`${seller.sender.agentUrl}/`, publicJwk('k'));
    const bench = await setup();
    expect(await find(bench, 'k', pinnedBy(seller, silent, slip))).toEqual(FOUND(jwk));
    expect(bench.alarmsOf('agent_not_listed')).toMatchObject([
      { sender: seller.sender.agentUrl, nearMisses: [`${seller.sender.agentUrl}/`] },
    ]);
    bench.advance(31_000);
    expect(await find(bench, 'x', pinnedBy(seller, silent, slip))).toEqual(UNKNOWN);
  });

  test('a file that cannot be fetched may pin: undecided, although the JWKS has the key', async () => {
    const seller = await startSeller(publicJwk('k'));
    const publisher = await startPublisher();
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
    expect(seller.server.count()).toBe(0);
    publisher.pin(seller.sender.agentUrl);
    bench.advance(MINUTE);
    expect(await find(bench, 'k', sender)).toMatchObject({ undecided: 0, keys: [expect.any(String)] });
  });

  test('keys that differ under one kid: that kid is undecided, the others are used, with an alarm', async () => {
    const seller = await startSeller(publicJwk('twice'));
    const [good, twice] = [publicJwk('good'), publicJwk('twice')];
    const publisher = await startPublisher(seller.sender.agentUrl, twice, good, publicJwk('twice'), good);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'good', sender)).toEqual(FOUND(good));
    expect(await find(bench, 'twice', sender)).toEqual(UNDECIDED);
    bench.advance(MINUTE);
    expect(await find(bench, 'made-up', sender)).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
    expect(bench.alarmsOf('key_document_invalid')[0]?.message).toMatch(
      /adagents\.json at .*: for "?http.*different keys share the kid "twice"\. None of them is used/,
    );
  });

  test('an alarm about keys that differ under one kid names four agents at most', async () => {
    const seller = await startSeller(publicJwk('k'));
    const publisher = await startPublisher();
    const entry = (url: string): object => ({ url, signing_keys: [publicJwk('k'), publicJwk('k')] });
    const agents = [1, 2, 3, 4, 5, 6].map((n) => entry(`https://agent-${n}.example/`));
    publisher.server.serve(ADAGENTS, { authorized_agents: [...agents, { url: seller.sender.agentUrl }] });
    const bench = await setup();
    await find(bench, 'k', pinnedBy(seller, publisher));
    const alarms = bench.alarmsOf('key_document_invalid').map(({ message }) => message);
    expect(alarms.flatMap((message) => message.match(/agent-\d/g))).toEqual(
      [1, 2, 3, 4].map((n) => `agent-${n}`),
    );
  });

  test('a kid that becomes two keys keeps the one that verified until its hard limit', async () => {
    const seller = await startSeller();
    const [first, second] = [publicJwk('k'), publicJwk('k')];
    const publisher = await startPublisher(seller.sender.agentUrl, first);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(first));
    publisher.pin(seller.sender.agentUrl, first, second);
    bench.advance(HOUR + MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(first));
    bench.advance(4 * HOUR);
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
  });

  test('an unusable pin is the publisher’s mistake: undecided, never refused', async () => {
    const seller = await startSeller(publicJwk('k'));
    const pins = [{ ...publicJwk('k'), kty: 'RSA' }, publicJwk('fine')];
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, ...pins));
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
    expect(await find(bench, 'fine', sender)).toMatchObject({ undecided: 0, keys: [expect.any(String)] });
  });
});

describe('a pinned key without a purpose (verification.md §5.5)', () => {
  const bare = (jwk: Jwk): Jwk =>
    Object.fromEntries(Object.entries(jwk).filter(([name]) => name !== 'proto_use'));

  /** The purposes of what was found. */
  async function purposes(bench: Bench, sender: SenderEntry): Promise<unknown> {
    const { candidates } = await bench.keys.find('k', { senders: [sender], arrivedAt: bench.now() });
    return candidates.map(({ key: { jwk } }) => [jwk['x'], jwk['proto_use'], jwk['adcp_use']]);
  }

  test.each([
    ['webhook-signing', { proto_use: 'webhook-signing' }],
    ['another purpose', { proto_use: 'response-signing' }],
    ['one by another name', { adcp_use: 'request-signing' }],
  ])('has that of the same key in the JWKS: %s', async (_, stated) => {
    const pin = bare(publicJwk('k'));
    // A key of the JWKS with another kid and the same material says less than the one with the same.
    const other = { ...pin, kid: 'other', proto_use: 'governance-signing' };
    const seller = await startSeller(other, { ...bare(pin), ...stated });
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin));
    const bench = await setup();
    const use = stated as Jwk;
    expect(await purposes(bench, sender)).toEqual([[pin['x'], use['proto_use'], use['adcp_use']]]);
    expect(await purposes(bench, sender)).toEqual([[pin['x'], use['proto_use'], use['adcp_use']]]);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
    expect(bench.alarmsOf('key_document_invalid')).toEqual([]);
  });

  test('under another kid it is the same key', async () => {
    const pin = bare(publicJwk('k'));
    const seller = await startSeller({ ...pin, kid: 'new', proto_use: 'response-signing' });
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin));
    expect(await purposes(await setup(), sender)).toEqual([[pin['x'], 'response-signing', undefined]]);
  });

  test('counts for webhooks, with one alarm, where the JWKS has another key under its kid, or cannot be had', async () => {
    const pin = bare(publicJwk('k'));
    const seller = await startSeller(publicJwk('k'));
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin));
    const counts = [[pin['x'], 'webhook-signing', 'webhook-signing']];
    for (const isThere of [true, false]) {
      if (!isThere) seller.server.answer(JWKS_PATH, (_req, res) => void res.writeHead(503).end());
      const bench = await setup();
      expect(await purposes(bench, sender)).toEqual(counts);
      expect(await purposes(bench, sender)).toEqual(counts);
      expect(bench.alarmsOf('key_document_invalid')).toMatchObject([
        {
          sender: sender.agentUrl,
          message: expect.stringMatching(/pins the key "k" .* it counts for webhooks/),
        },
      ]);
    }
  });

  test('the JWKS adds no key, and a pin that states its purpose asks nothing of it', async () => {
    const [pin, stated] = [bare(publicJwk('k')), publicJwk('s')];
    const seller = await startSeller({ ...pin, proto_use: 'webhook-signing' }, publicJwk('added'));
    const sender = pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin, stated));
    const bench = await setup();
    expect(await find(bench, 's', sender)).toEqual(FOUND(stated));
    expect(seller.server.count()).toBe(0);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(await find(bench, 'added', sender)).toEqual(UNKNOWN);
    expect(await replaced(bench, 'k', sender)).toEqual(UNKNOWN);
  });
});

describe('edition 3.3: pins narrow the JWKS and add nothing (verification.md §5.5)', () => {
  const edition = editionFor('3.3');
  const narrowedBy = (seller: Seller, ...publishers: readonly Publisher[]): SenderEntry => ({
    ...pinnedBy(seller, ...publishers),
    edition,
  });

  test('a key of the JWKS that the publisher pins, under whatever kid', async () => {
    const [jwk, unpinned] = [publicJwk('k'), publicJwk('unpinned')];
    const seller = await startSeller(jwk, unpinned);
    const publisher = await startPublisher(seller.sender.agentUrl, {
      ...jwk,
      kid: 'as the publisher calls it',
    });
    const bench = await setup();
    const sender = narrowedBy(seller, publisher);
    for (let time = 0; time < 2; time += 1) expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    expect(await replaced(bench, 'k', sender)).toEqual(UNKNOWN);
    expect(bench.alarms[0]?.message).toContain('in edition 3.3 only if its JWKS has them too');
    bench.advance(31_000);
    expect(await find(bench, 'unpinned', sender)).toEqual(UNKNOWN);
    expect(await find(bench, 'as the publisher calls it', sender)).toEqual(UNKNOWN);
    expect(await replaced(bench, 'unpinned', sender)).toEqual(UNKNOWN);
  });

  test('attack: a publisher pins a key of its own, under the kid of one in the JWKS', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const publisher = await startPublisher(seller.sender.agentUrl, publicJwk('k'), publicJwk('own'));
    const bench = await setup();
    const sender = narrowedBy(seller, publisher);
    expect(await find(bench, 'k', sender)).toEqual(UNKNOWN);
    expect(await find(bench, 'own', sender)).toEqual(UNKNOWN);
    publisher.pin(seller.sender.agentUrl, jwk);
    bench.advance(31_000);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
  });

  test('attack: a kid alone, and a key without its own material, match nothing', async () => {
    const { x: _x, ...bare } = publicJwk('k');
    const seller = await startSeller(publicJwk('k'));
    for (const pin of [{ kid: 'k' }, bare]) {
      const publisher = await startPublisher(seller.sender.agentUrl, pin);
      expect(await find(await setup(), 'k', narrowedBy(seller, publisher))).toEqual(UNKNOWN);
    }
  });

  test('every publisher that pins has to have it; one that pins nothing for the agent narrows nothing', async () => {
    const [both, one] = [publicJwk('both'), publicJwk('one')];
    const seller = await startSeller(both, one);
    const { agentUrl } = seller.sender;
    const publishers = [
      await startPublisher(agentUrl, both, one),
      await startPublisher(agentUrl),
      await startPublisher(agentUrl, both),
    ];
    const bench = await setup();
    expect(await find(bench, 'both', narrowedBy(seller, ...publishers))).toEqual(FOUND(both));
    expect(await find(bench, 'one', narrowedBy(seller, ...publishers))).toEqual(UNKNOWN);
    expect(await find(bench, 'one', narrowedBy(seller, ...publishers.slice(1, 2)))).toEqual(FOUND(one));
  });

  test('a publisher or a JWKS that cannot be had decides nothing; after the hour of its file a pin is looked at again', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const publisher = await startPublisher();
    const sender = narrowedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
    publisher.pin(seller.sender.agentUrl, jwk);
    bench.advance(MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    publisher.pin(seller.sender.agentUrl, publicJwk('k'));
    bench.advance(HOUR + MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(UNKNOWN);
    seller.server.answer(JWKS_PATH, (_req, res) => void res.writeHead(503).end());
    expect(await find(await setup(), 'k', sender)).toEqual(UNDECIDED);
  });

  test('what a pin says is revoked is revoked', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const pin = { ...jwk, revoked_at: '2026-03-01T11:00:00Z' };
    const sender = narrowedBy(seller, await startPublisher(seller.sender.agentUrl, pin));
    const bench = await setup();
    const { candidates } = await bench.keys.find('k', { senders: [sender], arrivedAt: bench.now() });
    const [found] = candidates;
    const at = Date.parse('2026-03-01T11:00:00Z') / 1000;
    expect(found && [at - 1, at].map((created) => isRevokedKey(found, candidates, created))).toEqual([
      false,
      true,
    ]);
  });

  test('the owner’s pins are absolute: nothing is asked for them, and publishers add nothing', async () => {
    const own = publicJwk('own');
    const seller = await startSeller(publicJwk('own'), publicJwk('theirs'));
    const publisher = await startPublisher(seller.sender.agentUrl, publicJwk('theirs'));
    const bench = await setup();
    const sender = { ...narrowedBy(seller, publisher), pins: [own] };
    expect(await find(bench, 'own', sender)).toEqual(FOUND(own));
    expect(await replaced(bench, 'own', sender)).toEqual(UNKNOWN);
    expect(await find(bench, 'theirs', sender)).toEqual(UNKNOWN);
    expect([fetches(publisher), seller.server.count(), bench.alarms]).toEqual([0, 0, []]);
  });
});

describe('a pinned key that the JWKS lacks, without an edition (verification.md §5.5)', () => {
  const noEdition = { edition: editionFor() };

  test('decides, with one alarm; one that the JWKS has is no alarm', async () => {
    const [pin, known] = [publicJwk('k'), publicJwk('known')];
    const seller = await startSeller(publicJwk('k'), { ...known, kid: 'by another kid' });
    const publisher = await startPublisher(seller.sender.agentUrl, pin, known);
    const sender = { ...pinnedBy(seller, publisher), ...noEdition };
    const bench = await setup();
    for (let time = 0; time < 3; time += 1) {
      expect(await find(bench, 'known', sender)).toEqual(FOUND(known));
      expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    }
    await expect
      .poll(() => bench.alarmsOf('pin_not_published'), PATIENT)
      .toMatchObject([
        { sender: seller.sender.agentUrl, keyid: 'k', message: expect.stringContaining("edition: '3.3'") },
      ]);
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('where the JWKS cannot be had nothing is said, and it is looked at again', async () => {
    const pin = publicJwk('k');
    const seller = await startSeller();
    seller.server.answer(JWKS_PATH, (_req, res) => void res.writeHead(503).end());
    const sender = {
      ...pinnedBy(seller, await startPublisher(seller.sender.agentUrl, pin)),
      ...noEdition,
    };
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    await expect.poll(() => seller.server.count(JWKS_PATH), PATIENT).toBe(1);
    expect(bench.alarmsOf('pin_not_published')).toEqual([]);
    seller.publish(publicJwk('k'));
    const seen = async (): Promise<unknown> => {
      bench.advance(MINUTE);
      expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
      return bench.alarmsOf('pin_not_published');
    };
    await expect.poll(seen, PATIENT).toHaveLength(1);
  });

  test('the owner’s pins raise none, and fetch nothing', async () => {
    const own = publicJwk('own');
    const seller = await startSeller(publicJwk('own'));
    const bench = await setup();
    const sender = { ...seller.sender, ...noEdition, pins: [own] };
    expect(await find(bench, 'own', sender)).toEqual(FOUND(own));
    expect([seller.server.count(), bench.alarms]).toEqual([0, []]);
  });
});

describe('several publishers: the union of their sets', () => {
  test('each adds what it pins, and one that pins nothing adds none', async () => {
    const seller = await startSeller(publicJwk('c'));
    const { agentUrl } = seller.sender;
    const [a, b] = [publicJwk('a'), publicJwk('b')];
    const publishers = [
      await startPublisher(agentUrl, a),
      await startPublisher(agentUrl),
      await startPublisher(agentUrl, b),
    ];
    const sender = pinnedBy(seller, ...publishers);
    const bench = await setup();
    expect(await find(bench, 'a', sender)).toEqual(FOUND(a));
    expect(await find(bench, 'b', sender)).toEqual(FOUND(b));
    expect(await find(bench, 'c', sender)).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
  });

  test('two keys under one kid are both tried, one key that two pin once', async () => {
    const seller = await startSeller();
    const { agentUrl } = seller.sender;
    const [one, two] = [publicJwk('k'), publicJwk('k')];
    const publishers = [one, two, one].map((pin) => startPublisher(agentUrl, pin));
    const sender = pinnedBy(seller, ...(await Promise.all(publishers)));
    expect(await find(await setup(), 'k', sender)).toEqual(FOUND(one, two));
  });

  test('with one unavailable: pins of the others are found, any other keyid is undecided', async () => {
    const seller = await startSeller(publicJwk('c'));
    const pin = publicJwk('a');
    const up = await startPublisher(seller.sender.agentUrl, pin);
    const down = await startPublisher();
    const sender = pinnedBy(seller, down, up);
    const bench = await setup();
    expect(await find(bench, 'a', sender)).toEqual(FOUND(pin));
    expect(await find(bench, 'c', sender)).toEqual(UNDECIDED);
    // Where the pin does not verify, the other publisher may have pinned the one that does.
    expect(await replaced(bench, 'a', sender)).toEqual(UNDECIDED);
    expect(seller.server.count()).toBe(0);
  });

  test('pins of the configuration and those of publishers are one set', async () => {
    const seller = await startSeller(publicJwk('c'));
    const [own, theirs] = [publicJwk('own'), publicJwk('theirs')];
    const publisher = await startPublisher(seller.sender.agentUrl, theirs);
    const sender = { ...pinnedBy(seller, publisher), pins: [own] };
    const bench = await setup();
    expect(await find(bench, 'own', sender)).toEqual(FOUND(own));
    expect(fetches(publisher)).toBe(0);
    expect(await find(bench, 'theirs', sender)).toEqual(FOUND(theirs));
    expect(await find(bench, 'c', sender)).toEqual(UNKNOWN);
    publisher.pin(seller.sender.agentUrl);
    bench.advance(2 * HOUR);
    expect(await find(bench, 'c', sender)).toEqual(UNKNOWN);
    expect(seller.server.count()).toBe(0);
  });

  test('one file is fetched once for all the agents that it lists', async () => {
    const [x, y] = [await startSeller(), await startSeller()];
    const publisher = await startPublisher();
    const [a, b] = [publicJwk('a'), publicJwk('b')];
    publisher.server.serve(ADAGENTS, {
      authorized_agents: [
        { url: x.sender.agentUrl, signing_keys: [a] },
        { url: y.sender.agentUrl, signing_keys: [b] },
      ],
    });
    const bench = await setup();
    expect(await find(bench, 'a', pinnedBy(x, publisher))).toEqual(FOUND(a));
    expect(await find(bench, 'b', pinnedBy(y, publisher))).toEqual(FOUND(b));
    expect(fetches(publisher)).toBe(1);
  });

  test('at most 32 files are fetched for one delivery, 8 at a time; the rest is undecided until the next', async () => {
    const seller = await startSeller();
    const pin = publicJwk('k');
    const last = await startPublisher(seller.sender.agentUrl, pin);
    let [running, most] = [0, 0];
    const server = await startKeyServer();
    server.answer(ADAGENTS, (req, res) => {
      running += 1;
      most = Math.max(most, running);
      setImmediate(() => {
        running -= 1;
        sends('{"authorized_agents":[]}')(req, res);
      });
    });
    // Names of one machine: loopback addresses.
    const { port } = new URL(server.origin);
    const hosts = Array.from({ length: 40 }, (_, index) => `publisher-${index}.example:${port}`);
    const bench = await setup({
      fetch: (url, init) => fetch(url.replace(/publisher-\d+\.example/, '127.0.0.1'), init),
    });
    const sender = { ...seller.sender, publishers: [...hosts, last.server.host] };
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
    expect(server.count()).toBe(32);
    expect(most).toBeLessThanOrEqual(8);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(server.count()).toBe(40);
  });
});

describe('rotation with overlapping keys', () => {
  test('a key that a publisher adds is found by one refetch, long before the file is an hour old', async () => {
    const seller = await startSeller();
    const { agentUrl } = seller.sender;
    const [old, next] = [publicJwk('old'), publicJwk('new')];
    const publisher = await startPublisher(agentUrl, old);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'old', sender);
    publisher.pin(agentUrl, old, next);
    bench.advance(1);
    expect(await find(bench, 'new', sender)).toEqual(FOUND(next));
    expect(await find(bench, 'old', sender)).toEqual(FOUND(old));
    expect(fetches(publisher)).toBe(2);
    publisher.pin(agentUrl, next);
    bench.advance(HOUR);
    expect(await find(bench, 'old', sender)).toEqual(UNKNOWN);
    expect(await find(bench, 'new', sender)).toEqual(FOUND(next));
  });

  test('while a refetch cools down an unknown keyid is undecided: 503, and found later', async () => {
    const seller = await startSeller();
    const { agentUrl } = seller.sender;
    const publisher = await startPublisher(agentUrl, publicJwk('old'));
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'old', sender);
    expect(await find(bench, 'x', sender)).toEqual(UNKNOWN);
    bench.advance(1);
    const next = publicJwk('new');
    publisher.pin(agentUrl, next);
    for (let count = 0; count < 20; count += 1) expect(await find(bench, 'new', sender)).toEqual(UNDECIDED);
    expect(fetches(publisher)).toBe(2);
    bench.advance(30_000);
    expect(await find(bench, 'new', sender)).toEqual(FOUND(next));
  });

  test('a pin replaced under its kid: one forced refetch, at most one in 30 s', async () => {
    const seller = await startSeller(publicJwk('k'));
    const { agentUrl } = seller.sender;
    const publisher = await startPublisher(agentUrl, publicJwk('k'));
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    bench.advance(30_000);
    const next = publicJwk('k');
    publisher.pin(agentUrl, next);
    expect(await replaced(bench, 'k', sender)).toEqual(FOUND(next));
    expect(await replaced(bench, 'k', sender)).toEqual(UNKNOWN);
    expect(fetches(publisher)).toBe(2);
    expect(seller.server.count()).toBe(0);
  });

  test('a key that no document had is looked for in new pins before it is called unknown', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const publisher = await startPublisher(seller.sender.agentUrl);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    bench.advance(31_000);
    const pin = publicJwk('new');
    publisher.pin(seller.sender.agentUrl, pin);
    expect(await find(bench, 'new', sender)).toEqual(FOUND(pin));
    // And from then on only pins count.
    bench.advance(31_000);
    expect(await find(bench, 'k', sender)).toEqual(UNKNOWN);
  });

  test('publishers that stop pinning hand the agent back to its JWKS', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const publisher = await startPublisher(seller.sender.agentUrl, publicJwk('k'));
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    publisher.pin(seller.sender.agentUrl);
    bench.advance(30_000);
    expect(await replaced(bench, 'k', sender)).toEqual(FOUND(jwk));
  });
});

describe('cache rules of adagents.json', () => {
  test('an hour by default, refreshed in the background from 80 % of it', async () => {
    const seller = await startSeller();
    const pin = publicJwk('k');
    const publisher = await startPublisher(seller.sender.agentUrl, pin);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup({ random: () => 0.999 });
    await find(bench, 'k', sender);
    bench.advance(47 * MINUTE);
    await find(bench, 'k', sender);
    expect(fetches(publisher)).toBe(1);
    const held = gate(sends('{"authorized_agents":[]}'));
    publisher.server.answer(ADAGENTS, held.answerer);
    bench.advance(2 * MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    await publisher.server.asked(ADAGENTS, 2);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    held.open();
  });

  test('a file without pins is kept fresh by the deliveries that it permits', async () => {
    const seller = await startSeller(publicJwk('k'));
    const publisher = await startPublisher(seller.sender.agentUrl);
    const halfAnHour = { 'cache-control': 'max-age=1800' };
    seller.server.serve(BRAND, { agents: [{ url: seller.sender.agentUrl }] }, halfAnHour);
    seller.server.serve(JWKS_PATH, { keys: [publicJwk('k')] }, halfAnHour);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    bench.advance(20 * MINUTE);
    await find(bench, 'k', sender);
    bench.advance(20 * MINUTE);
    await find(bench, 'k', sender);
    expect(fetches(publisher)).toBe(1);
    bench.advance(9 * MINUTE);
    await find(bench, 'k', sender);
    await publisher.server.asked(ADAGENTS, 2);
  });

  test('past its life a file is fetched again before the JWKS is used', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const { agentUrl } = seller.sender;
    const publisher = await startPublisher();
    const unpinned = { authorized_agents: [{ url: agentUrl }] };
    publisher.server.serve(ADAGENTS, unpinned, { 'cache-control': 'max-age=60' });
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    const pin = publicJwk('k');
    publisher.pin(agentUrl, pin);
    bench.advance(MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(seller.server.count(JWKS_PATH)).toBe(1);
  });

  test('a publisher that begins to pin other keys is followed although its copy was overdue', async () => {
    const jwk = publicJwk('k');
    const halfAnHour = { 'cache-control': 'max-age=1800' };
    const seller = await startSeller(jwk);
    seller.server.serve(BRAND, { agents: [{ url: seller.sender.agentUrl }] }, halfAnHour);
    seller.server.serve(JWKS_PATH, { keys: [jwk] }, halfAnHour);
    const publisher = await startPublisher();
    const unpinned = { authorized_agents: [{ url: seller.sender.agentUrl }] };
    publisher.server.serve(ADAGENTS, unpinned, { 'cache-control': 'max-age=60' });
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    publisher.pin(seller.sender.agentUrl, publicJwk('another'));
    bench.advance(MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(UNKNOWN);
  });

  test('a pin in a copy past its life is refreshed without asking other senders', async () => {
    const [x, y] = [await startSeller(), await startSeller(publicJwk('k'))];
    const publisher = await startPublisher(x.sender.agentUrl, publicJwk('k'));
    const sender = pinnedBy(x, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    bench.advance(HOUR);
    const search = await bench.keys.find('k', { senders: [sender, y.sender], arrivedAt: bench.now() });
    expect(search.candidates.map((candidate) => candidate.sender)).toEqual([sender]);
    expect(fetches(publisher)).toBe(2);
    expect(y.server.count()).toBe(0);
  });

  test('a cached pin that was not tried is tried, although its file cannot be refreshed', async () => {
    const [x, y] = [await startSeller(publicJwk('k')), await startSeller()];
    const pin = publicJwk('k');
    const publisher = await startPublisher(y.sender.agentUrl, pin);
    const pinned = pinnedBy(y, publisher);
    const bench = await setup();
    await find(bench, 'k', pinned);
    await publisher.server.close();
    bench.advance(HOUR);
    const senders = [x.sender, pinned];
    const { candidates } = await bench.keys.find('k', { senders: [x.sender], arrivedAt: bench.now() });
    expect(told(await bench.keys.findReplaced('k', { senders, arrivedAt: bench.now() }, candidates))).toEqual(
      {
        keys: [pin['x']],
        undecided: 1,
      },
    );
  });

  test('during an outage pins verify for four hours, then all is undecided', async () => {
    const seller = await startSeller(publicJwk('k'));
    const pin = publicJwk('k');
    const publisher = await startPublisher(seller.sender.agentUrl, pin);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    await publisher.server.close();
    bench.advance(4 * HOUR - 1);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(await find(bench, 'x', sender)).toEqual(UNDECIDED);
    bench.advance(1);
    expect(await find(bench, 'k', sender)).toEqual(UNDECIDED);
    expect(bench.alarmsOf('key_fetch_failing').length).toBeGreaterThan(0);
    expect(seller.server.count()).toBe(0);
  });

  test('that nothing is pinned holds during an outage as well', async () => {
    const jwk = publicJwk('k');
    const seller = await startSeller(jwk);
    const publisher = await startPublisher(seller.sender.agentUrl);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    await publisher.server.close();
    bench.advance(2 * HOUR);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(jwk));
    expect(await find(bench, 'x', sender)).toEqual(UNDECIDED);
  });

  const over = `{"authorized_agents":[],"pad":"${'x'.repeat(1_048_576)}"}`;
  test.each([
    ['HTML', '<!doctype html>'],
    ['a duplicate JSON key', '{"authorized_agents":[],"authorized_agents":[]}'],
    ['over 1 MiB', over],
    ['a wrong shape', '{"authorized_agents":{}}'],
  ])(
    'a broken file (%s): the previous copy in force and an alarm; undecided without one',
    async (_what, body) => {
      const seller = await startSeller(publicJwk('k'));
      const pin = publicJwk('k');
      const publisher = await startPublisher(seller.sender.agentUrl, pin);
      const sender = pinnedBy(seller, publisher);
      const bench = await setup();
      await find(bench, 'k', sender);
      publisher.server.answer(ADAGENTS, sends(body));
      bench.advance(2 * HOUR);
      expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
      expect(bench.alarms.map(({ code }) => code)).toEqual([
        'publisher_pins',
        expect.stringMatching(/^key_/),
      ]);
      expect(await find(await setup(), 'k', sender)).toEqual(UNDECIDED);
    },
  );

  test('up to 1 MiB is read', async () => {
    const seller = await startSeller();
    const pin = publicJwk('k');
    const publisher = await startPublisher();
    const json = { authorized_agents: [{ url: seller.sender.agentUrl, signing_keys: [pin] }], pad: '' };
    json.pad = 'x'.repeat(1_048_576 - JSON.stringify(json).length);
    publisher.server.serve(ADAGENTS, json);
    expect(await find(await setup(), 'k', pinnedBy(seller, publisher))).toEqual(FOUND(pin));
  });

  test('a broken entry for this agent: its pins stay, and an unknown keyid is undecided', async () => {
    const seller = await startSeller(publicJwk('x'));
    const { agentUrl } = seller.sender;
    const pin = publicJwk('k');
    const publisher = await startPublisher(agentUrl, pin);
    const sender = pinnedBy(seller, publisher);
    const bench = await setup();
    await find(bench, 'k', sender);
    publisher.pin(agentUrl, { ...publicJwk('k'), d: 'secret' });
    bench.advance(2 * HOUR);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(bench.alarmsOf('key_document_invalid')).toMatchObject([{ sender: agentUrl }]);
    expect(await find(bench, 'x', sender)).toEqual(UNDECIDED);
  });
});

describe('warm()', () => {
  test('fetches the files of publishers, and brand.json and JWKS only where none pins', async () => {
    const [pinned, free] = [await startSeller(), await startSeller()];
    const publisher = await startPublisher();
    publisher.server.serve(ADAGENTS, {
      authorized_agents: [{ url: pinned.sender.agentUrl, signing_keys: [publicJwk('k')] }],
    });
    const bench = await setup();
    await bench.keys.warm([pinnedBy(pinned, publisher), pinnedBy(free, publisher)]);
    await free.server.asked(JWKS_PATH, 1);
    expect(fetches(publisher)).toBe(1);
    expect(free.server.count(BRAND)).toBe(1);
    expect(pinned.server.count(BRAND)).toBe(0);
    expect(pinned.server.count(JWKS_PATH)).toBe(0);
  });
});

test('answers come in the order of the items, whichever comes first', async () => {
  const later = latch();
  const results = await mapConcurrently([1, 2, 3], 3, async (item) => {
    if (item === 3) later.open();
    else await later.opened;
    return item * 2;
  });
  expect(results).toEqual([2, 4, 6]);
});

test('at most `width` are asked at a time', async () => {
  let running = 0;
  let most = 0;
  await mapConcurrently(
    Array.from({ length: 20 }, (_, index) => index),
    4,
    async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
    },
  );
  expect(most).toBe(4);
});

test('no items: no result', async () => {
  expect(await mapConcurrently([], 8, () => Promise.reject(new Error('asked')))).toEqual([]);
});

describe('a publisher’s file that is elsewhere (verification.md §5.10)', () => {
  const listing = (agentUrl: string, ...keys: readonly Jwk[]): object => ({
    authorized_agents: [{ url: agentUrl, ...(keys.length > 0 && { signing_keys: keys }) }],
  });

  /** A publisher whose file only points to `manager`, any other host. */
  async function pointing(...keys: readonly Jwk[]) {
    const seller = await startSeller(publicJwk('k'));
    const [publisher, manager] = [await startPublisher(), await startKeyServer()];
    publisher.server.serve(ADAGENTS, { authoritative_location: `${manager.origin}/list.json` });
    manager.serve('/list.json', listing(seller.sender.agentUrl, ...keys));
    return { seller, publisher, manager, sender: pinnedBy(seller, publisher), bench: await setup() };
  }

  test('is followed once: its pins decide, and another key is unknown', async () => {
    const pin = publicJwk('k');
    const { sender, bench, publisher, manager } = await pointing(pin);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    expect([fetches(publisher), manager.count('/list.json')]).toEqual([1, 1]);
    expect(await find(bench, 'other', sender)).toEqual(UNKNOWN);
  });

  test('a new pin there is found by one fetch of the list alone', async () => {
    const { sender, bench, publisher, manager, seller } = await pointing(publicJwk('k'));
    await find(bench, 'k', sender);
    const next = publicJwk('next');
    manager.serve('/list.json', listing(seller.sender.agentUrl, next));
    bench.advance(MINUTE);
    expect(await find(bench, 'next', sender)).toEqual(FOUND(next));
    expect([fetches(publisher), manager.count('/list.json')]).toEqual([1, 2]);
  });

  test('the file that becomes a pointer, and back', async () => {
    const [pin, direct] = [publicJwk('k'), publicJwk('d')];
    const { sender, bench, publisher, manager, seller } = await pointing(pin);
    publisher.pin(seller.sender.agentUrl, direct);
    expect(await find(bench, 'd', sender)).toEqual(FOUND(direct));
    publisher.server.serve(ADAGENTS, { authoritative_location: `${manager.origin}/list.json` });
    bench.advance(61 * MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    publisher.pin(seller.sender.agentUrl, direct);
    bench.advance(61 * MINUTE);
    expect(await find(bench, 'd', sender)).toEqual(FOUND(direct));
  });

  test.each<[string, (seller: Seller, manager: KeyServer) => void]>([
    [
      'does not list the agent',
      (_seller, manager) => manager.serve('/list.json', listing('https://x.example/')),
    ],
    ['lists nobody', (_seller, manager) => manager.serve('/list.json', {})],
    [
      'points elsewhere again',
      (_seller, manager) => manager.serve('/list.json', { authoritative_location: `${manager.origin}/2` }),
    ],
    [
      'redirects',
      ({ sender }, manager) => {
        manager.serve('/2', listing(sender.agentUrl));
        manager.answer('/list.json', (_req, res) => res.writeHead(302, { location: '/2' }).end());
      },
    ],
    [
      'cannot be had',
      (_seller, manager) => manager.answer('/list.json', (_req, res) => res.writeHead(500).end()),
    ],
  ])('that %s leaves the pins of before in force, else 503; with an alarm', async (_what, spoil) => {
    const pin = publicJwk('k');
    const { sender, bench, seller, manager } = await pointing(pin);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    spoil(seller, manager);
    bench.advance(61 * MINUTE);
    expect(await find(bench, 'k', sender)).toEqual(FOUND(pin));
    const alarms = () => [...bench.alarmsOf('key_document_invalid'), ...bench.alarmsOf('key_fetch_failing')];
    expect(alarms()).not.toEqual([]);
    const cold = await setup();
    expect(await find(cold, 'k', sender)).toEqual(UNDECIDED);
    expect(manager.count('/2')).toBe(0);
  });

  test('a list without pins for the agent pins nothing: its JWKS decides', async () => {
    const { sender, bench, seller } = await pointing();
    const { candidates } = await bench.keys.find('k', { senders: [sender], arrivedAt: bench.now() });
    expect([candidates.length, seller.server.count(JWKS_PATH)]).toEqual([1, 1]);
  });
});
