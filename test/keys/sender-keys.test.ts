import { describe, expect, test } from 'vitest';
import type { KeyPair } from '../../src/sender/sign.ts';
import {
  ACCEPTED,
  deliveryBench,
  type DeliveryBench,
  INVALID,
  keyNamed,
  UNAVAILABLE,
  UNKNOWN,
} from './delivery-bench.ts';
import { type Answerer, gate, sends, startKeyServer } from './key-server.ts';
import {
  BRAND,
  JWKS_PATH,
  MINUTE,
  publicJwk,
  type Seller,
  senderEntry,
  setup,
  startSeller,
} from './setup.ts';

const MOVED = '/moved/jwks.json';
const OTHER_BRAND = '/house/brand.json';
const COOLDOWN = 30_000;

interface Bench extends DeliveryBench {
  readonly seller: Seller;
  /** Serves these keys at a path. */
  readonly publish: (path: string, ...keys: readonly KeyPair[]) => void;
  /** From now on brand.json names the other place. The old JWKS stays as it is. */
  readonly move: (...keys: readonly KeyPair[]) => void;
  /** Fetches of brand.json, of the first JWKS, and of the one at the other place. */
  readonly fetches: () => number[];
}

/** A receiver that has accepted a delivery of the first key: both documents are held. */
async function bench(first: KeyPair, ...more: readonly KeyPair[]): Promise<Bench> {
  const seller = await startSeller();
  const { server, sender } = seller;
  const publish: Bench['publish'] = (path, ...keys) => {
    server.serve(path, { keys: keys.map((key) => key.publicJwk) });
  };
  publish(JWKS_PATH, first, ...more);
  const made = deliveryBench({ agentUrl: sender.agentUrl });
  expect(await made.deliver(first)).toBe(ACCEPTED);
  return {
    ...made,
    seller,
    publish,
    move: (...keys) => {
      publish(MOVED, ...keys);
      const jwks_uri = `${server.origin}${MOVED}`;
      server.serve(BRAND, { agents: [{ url: sender.agentUrl, jwks_uri }] });
    },
    fetches: () => [BRAND, JWKS_PATH, MOVED].map((path) => server.count(path)),
  };
}

const broken: Answerer = (_req, res) => res.writeHead(502).end();

describe('a seller that moved its jwks_uri and left the old JWKS where it was', () => {
  test('a new kid: one refetch of each document, then accepted, with an alarm', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    made.move(old, next);
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 2, 1]);
    expect(await made.deliver(old)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 2, 1]);
    expect(made.alarmsOf('jwks_uri_moved')).toMatchObject([
      { jwksUri: `${made.seller.server.origin}${MOVED}`, first: `${made.seller.server.origin}${JWKS_PATH}` },
    ]);
  });

  test('the same kid: accepted once the copies are 30 s old; younger ones decide at once', async () => {
    const [old, next] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(old);
    made.move(next);
    made.advance(COOLDOWN - 1);
    expect(await made.deliver(next)).toBe(INVALID);
    expect(made.fetches()).toEqual([1, 1, 0]);
    made.advance(1);
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 2, 1]);
  });

  test('the same kid, while only the JWKS is younger than 30 s: brand.json is asked all the same', async () => {
    const [old, next] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(old);
    const { server } = made.seller;
    server.serve(JWKS_PATH, { keys: [old.publicJwk] }, { 'cache-control': 'max-age=60' });
    made.advance(COOLDOWN);
    // Learns that the set lives for a minute: brand.json is renewed with it, and older than the next copy of the set.
    expect(await made.deliver(await keyNamed('x'))).toBe(UNKNOWN);
    made.advance(MINUTE);
    expect(await made.deliver(old)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 3, 0]);
    made.move(next);
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([3, 3, 1]);
  });

  test('the old JWKS was taken down: accepted too', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    made.move(next);
    made.seller.server.answer(JWKS_PATH, (_req, res) => res.writeHead(404).end());
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 2, 1]);
  });

  test('neither set has the kid: 401', async () => {
    const old = await keyNamed('old');
    const made = await bench(old);
    made.move(old);
    expect(await made.deliver(await keyNamed('x'))).toBe(UNKNOWN);
    expect(made.fetches()).toEqual([2, 2, 1]);
  });

  test('the new set cannot be had: 503, and accepted when it can', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    made.move(next);
    made.seller.server.answer(MOVED, broken);
    expect(await made.deliver(next)).toBe(UNAVAILABLE);
    made.publish(MOVED, next);
    made.advance(1000);
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([2, 2, 2]);
  });

  test('it moved while a refetch cools down: 503 until 30 s are over, then accepted', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    expect(await made.deliver(await keyNamed('x'))).toBe(UNKNOWN);
    made.move(old, next);
    for (const wait of [1, COOLDOWN - 2]) {
      made.advance(wait);
      expect(await made.deliver(next)).toBe(UNAVAILABLE);
    }
    expect(made.fetches()).toEqual([2, 2, 0]);
    made.advance(1);
    expect(await made.deliver(next)).toBe(ACCEPTED);
    expect(made.fetches()).toEqual([3, 3, 1]);
  });
});

describe('a brand.json that cannot be asked: its copy stands, within its hard limit', () => {
  const FAULTS: readonly (readonly [string, Answerer])[] = [
    ['502', broken],
    ['HTML', sends('<!doctype html>')],
    ['a member twice', sends('{"agents":[],"agents":[]}')],
  ];

  test.each(FAULTS)(
    '%s: unknown and invalid as by the JWKS, which was fetched again',
    async (_what, fault) => {
      const [key, added] = [await keyNamed('k'), await keyNamed('added')];
      const [stranger, forger] = [await keyNamed('x'), await keyNamed('k')];
      const made = await bench(key);
      made.seller.server.answer(BRAND, fault);
      made.advance(COOLDOWN);
      expect(await made.deliver(stranger)).toBe(UNKNOWN);
      expect(await made.deliver(forger)).toBe(INVALID);
      expect(await made.deliver(key)).toBe(ACCEPTED);
      expect(made.fetches()).toEqual([2, 2, 0]);
      // A key that the JWKS has by now needs no brand.json.
      made.publish(JWKS_PATH, key, added);
      made.advance(COOLDOWN);
      expect(await made.deliver(added)).toBe(ACCEPTED);
      expect(made.fetches()).toEqual([2, 3, 0]);
      // Nor is it asked where the JWKS cools down, which leaves the answer open whatever it says.
      expect(await made.deliver(stranger)).toBe(UNAVAILABLE);
      expect(made.fetches()).toEqual([2, 3, 0]);
    },
  );

  test('down for 20 min, its copy past its life: the same; over its hard limit 503', async () => {
    const [key, stranger, forger] = [await keyNamed('k'), await keyNamed('x'), await keyNamed('k')];
    const made = await bench(key);
    made.seller.server.answer(BRAND, broken);
    made.advance(20 * MINUTE);
    expect(await made.deliver(key)).toBe(ACCEPTED);
    expect([await made.deliver(stranger), await made.deliver(forger)]).toEqual([UNKNOWN, INVALID]);
    expect(made.alarmsOf('key_fetch_failing').length).toBeGreaterThan(0);
    made.advance(11 * MINUTE);
    expect([await made.deliver(stranger), await made.deliver(key)]).toEqual([UNAVAILABLE, UNAVAILABLE]);
    made.seller.server.serve(BRAND, { agents: [{ url: made.seller.sender.agentUrl }] });
    made.advance(MINUTE);
    expect([await made.deliver(stranger), await made.deliver(forger)]).toEqual([UNKNOWN, INVALID]);
    expect(await made.deliver(key)).toBe(ACCEPTED);
  });

  test('a key replaced under its kid in the JWKS is accepted meanwhile', async () => {
    const [key, next] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(key);
    made.seller.server.answer(BRAND, broken);
    made.publish(JWKS_PATH, next);
    made.advance(COOLDOWN);
    expect(await made.deliver(next)).toBe(ACCEPTED);
  });

  test('the failure is remembered: it is not asked again for each delivery', async () => {
    const key = await keyNamed('k');
    const made = await bench(key);
    made.seller.server.answer(BRAND, broken);
    const strangers = await Promise.all(Array.from({ length: 20 }, (_, index) => keyNamed(`x${index}`)));
    const said: string[] = [];
    for (const stranger of strangers) said.push(await made.deliver(stranger));
    // The JWKS cools down after the first.
    expect(said).toEqual([UNKNOWN, ...Array.from({ length: 19 }, () => UNAVAILABLE)]);
    expect(made.fetches()).toEqual([2, 2, 0]);
  });

  test('keys that a publisher has pinned by now are found all the same', async () => {
    const { server, sender } = await startSeller(publicJwk('k'));
    const publisher = await startKeyServer();
    const pin = (signing_keys: readonly unknown[]): void => {
      publisher.serve('/.well-known/adagents.json', {
        authorized_agents: [{ url: sender.agentUrl, signing_keys }],
      });
    };
    pin([]);
    const senders = [{ ...sender, publishers: [publisher.host] }];
    const { keys, now, advance } = await setup();
    expect((await keys.find('k', senders, now())).candidates).toHaveLength(1);
    server.answer(BRAND, broken);
    pin([publicJwk('pinned')]);
    advance(1);
    expect(await keys.find('pinned', senders, now())).toMatchObject({
      candidates: [{ key: { kid: 'pinned' } }],
      undecided: [],
    });
  });
});

describe('what the brand.json that is asked again says', () => {
  test.each([
    ['lists the agent no longer', () => []],
    ['lists it twice, and differently', (url: string) => [{ url }, { url, jwks_uri: `${url}/keys` }]],
  ])('it %s: 503 and an alarm, and in order when it does again', async (_what, agents) => {
    const [key, stranger] = [await keyNamed('k'), await keyNamed('x')];
    const made = await bench(key);
    const { server, sender } = made.seller;
    server.serve(BRAND, { agents: agents(sender.agentUrl) });
    expect(await made.deliver(stranger)).toBe(UNAVAILABLE);
    // As where its own life renewed it: the seller's word, whoever caused it to be asked.
    expect(await made.deliver(key)).toBe(UNAVAILABLE);
    expect(made.alarmsOf('agent_not_listed')).toHaveLength(1);
    server.serve(BRAND, { agents: [{ url: sender.agentUrl }] });
    made.advance(COOLDOWN);
    expect(await made.deliver(key)).toBe(ACCEPTED);
    made.advance(COOLDOWN);
    expect(await made.deliver(stranger)).toBe(UNKNOWN);
  });

  test.each(['house', 'authoritative_location'])('%s: both files are asked again', async (pointer) => {
    const [old, next] = [publicJwk('old'), publicJwk('new')];
    const seller = await startSeller(old);
    const house = await startKeyServer();
    const { server, sender } = seller;
    const [first, second] = pointer === 'house' ? [BRAND, BRAND] : [OTHER_BRAND, '/other.json'];
    const at = (path: string): string => (pointer === 'house' ? house.host : `${house.origin}${path}`);
    server.serve(BRAND, { [pointer]: at(first) });
    house.serve(first, { agents: [{ url: sender.agentUrl }] });
    const { keys, now, advance } = await setup();
    await keys.find('old', [sender], now());
    house.serve(second, { agents: [{ url: sender.agentUrl, jwks_uri: `${house.origin}/keys` }] });
    house.serve('/keys', { keys: [next] });
    server.serve(BRAND, { [pointer]: at(second) });
    advance(1);
    expect((await keys.find('new', [sender], now())).candidates).toMatchObject([{ key: { jwk: next } }]);
    const fetched = [...new Set([first, second])].reduce((sum, path) => sum + house.count(path), 0);
    expect([server.count(BRAND), fetched, house.count('/keys')]).toEqual([2, 2, 1]);
    // The file that is pointed to cannot be had: its copy stands, as where the first cannot.
    house.answer(second, broken);
    advance(COOLDOWN);
    const unknown = await keys.find('x', [sender], now());
    expect([unknown.candidates, unknown.undecided]).toEqual([[], []]);
  });

  test.each([
    'http://seller.example/keys',
    'https://169.254.169.254/keys',
    'https://127.0.0.1/keys',
    'https://localhost/keys',
    'https://user@seller.example/keys',
  ])('a new jwks_uri is judged like any other, and not fetched: %s', async (jwks_uri) => {
    const sender = senderEntry('https://seller.example/mcp');
    const documents = new Map<string, unknown>([
      [`https://seller.example${BRAND}`, { agents: [{ url: sender.agentUrl }] }],
      [`https://seller.example${JWKS_PATH}`, { keys: [publicJwk('k')] }],
    ]);
    const asked: string[] = [];
    const { keys, now, advance } = await setup({
      allowLoopback: false,
      transport: (url) => {
        asked.push(url);
        return Promise.resolve(Response.json(documents.get(url) ?? { keys: [publicJwk('new')] }));
      },
    });
    await keys.find('k', [sender], now());
    documents.set(`https://seller.example${BRAND}`, { agents: [{ url: sender.agentUrl, jwks_uri }] });
    advance(1);
    const search = await keys.find('new', [sender], now());
    expect([search.candidates, search.undecided.length]).toEqual([[], 1]);
    const [brand, jwks] = [...documents.keys()];
    expect(asked).toEqual([brand, jwks, jwks, brand]);
  });
});

describe('what a flood can cause', () => {
  test.each([true, false])('one refetch of each URL in 30 s, fetches shared: %s', async (sharedFetches) => {
    const { server, sender } = await startSeller(publicJwk('k'));
    const { keys, now, advance } = await setup({ sharedFetches });
    await keys.find('k', [sender], now());
    const forged = async (): Promise<void> => {
      const { candidates } = await keys.find('k', [sender], now());
      await keys.findReplaced('k', [sender], candidates, now());
    };
    for (let period = 1; period <= 3; period += 1) {
      advance(1);
      const strangers = Array.from({ length: 100 }, () => keys.find(crypto.randomUUID(), [sender], now()));
      await Promise.all([...strangers, ...Array.from({ length: 100 }, forged)]);
      advance(COOLDOWN - 2);
      await Promise.all([keys.find(crypto.randomUUID(), [sender], now()), forged()]);
      expect([server.count(BRAND), server.count(JWKS_PATH)]).toEqual([period + 1, period + 1]);
      advance(1);
    }
  });

  test('a brand.json that names another jwks_uri each time: one fetch more in 30 s', async () => {
    const { server, sender } = await startSeller(publicJwk('k'));
    const { keys, now, advance } = await setup();
    await keys.find('k', [sender], now());
    const served = sends('{"keys":[]}');
    server.answer(BRAND, (req, res) => {
      const path = `/keys/${server.count(BRAND)}`;
      server.answer(path, served);
      sends(JSON.stringify({ agents: [{ url: sender.agentUrl, jwks_uri: `${server.origin}${path}` }] }))(
        req,
        res,
      );
    });
    for (let period = 1; period <= 3; period += 1) {
      advance(1);
      for (let count = 0; count < 20; count += 1) await keys.find(crypto.randomUUID(), [sender], now());
      expect(server.count(BRAND)).toBe(period + 1);
      expect(server.count()).toBe(2 + 3 * period);
      advance(COOLDOWN - 1);
    }
  });

  test('of 40 senders with a brand.json each at most 32 are asked, and 8 fetches at a time', async () => {
    const server = await startKeyServer();
    const names = Array.from({ length: 40 }, (_, index) => `/${index}`);
    let running = 0;
    let most = 0;
    const counted = (path: string, json: unknown): void => {
      server.answer(path, (req, res) => {
        running += 1;
        most = Math.max(most, running);
        setImmediate(() => {
          running -= 1;
          sends(JSON.stringify(json))(req, res);
        });
      });
    };
    for (const name of names) {
      const jwks_uri = `${server.origin}${name}/keys`;
      counted(`${name}/brand.json`, { agents: [{ url: `${server.origin}${name}`, jwks_uri }] });
      counted(`${name}/keys`, { keys: [publicJwk('k')] });
    }
    const senders = names.map((name) =>
      senderEntry(`${server.origin}${name}`, { brandJsonUrl: `${server.origin}${name}/brand.json` }),
    );
    const { keys, now, advance } = await setup();
    for (const sender of senders) await keys.find('k', [sender], now());
    [most, running] = [0, 0];
    advance(1);
    const search = await keys.find('x', senders, now());
    expect(search.undecided).toHaveLength(8);
    expect(server.count()).toBe(80 + 64);
    expect(most).toBeLessThanOrEqual(8);
  });

  test('senders of one house: its brand.json is asked once for all of them, and decides for all', async () => {
    const server = await startKeyServer();
    const paths = Array.from({ length: 10 }, (_, index) => `/${index}/mcp`);
    server.serve(BRAND, {
      agents: paths.map((path) => ({ url: server.origin + path, jwks_uri: `${server.origin}${path}/keys` })),
    });
    for (const path of paths) server.serve(`${path}/keys`, { keys: [publicJwk('k')] });
    const senders = paths.map((path) => senderEntry(server.origin + path));
    const { keys, now, advance } = await setup({ limits: { graceMs: 10_000 } });
    expect((await keys.find('k', senders, now())).candidates).toHaveLength(10);
    advance(1);
    expect(await keys.find('x', senders, now())).toEqual({ candidates: [], undecided: [] });
    expect([server.count(BRAND), server.count()]).toEqual([2, 22]);
  });

  test('a brand.json that hangs holds up no delivery whose key is known', async () => {
    const key = await keyNamed('k');
    const made = await bench(key);
    const { server, sender } = made.seller;
    const held = gate(sends(JSON.stringify({ agents: [{ url: sender.agentUrl }] })));
    server.answer(BRAND, held.answerer);
    const stranger = made.deliver(await keyNamed('x'));
    await server.asked(BRAND, 2);
    for (let count = 0; count < 20; count += 1) expect(await made.deliver(key)).toBe(ACCEPTED);
    held.open();
    expect(await stranger).toBe(UNKNOWN);
  });
});
