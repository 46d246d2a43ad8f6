import nodeCrypto from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, onTestFinished, it, vi } from 'vitest';
import { statsOf } from '../../src/for-tests.ts';
import { createReceiver, type InboxStats, type Receiver, type Store } from '../../src/index.ts';
import { generateKey, type KeyPair, signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { AGENT, said, URL_GIVEN } from '../receiver/setup.ts';
import { acceptRequest } from '../stores/requests.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import { type CountedStore, countedMysql, countedPostgres, countedRedis } from './round-trips.ts';
import { type Watch, watchBody } from './watch-body.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

/** What a delivery may cost, counted: `npm run bench` has the times. */

const payloads = samplePayloads();
const ACCEPTED = 'accepted 200';
const DELIVERIES = 5;

interface Desk {
  readonly receiver: Receiver;
  readonly sign: (key?: KeyPair, payload?: object) => Promise<SignedDelivery>;
  readonly deliver: (delivery: SignedDelivery) => Promise<string>;
}

const seller = (kid: string): Promise<KeyPair> => generateKey('ed25519', 'webhook-signing', { kid });

/** A receiver on `store` whose leases are too long to be renewed meanwhile, however slow the machine. */
async function desk(store: Store, ...more: readonly KeyPair[]): Promise<Desk> {
  const key = await seller('seller-1');
  const receiver = createReceiver({
    publicUrl: URL_GIVEN,
    senders: [{ agentUrl: AGENT, pins: [key, ...more].map(({ publicJwk }) => publicJwk) }],
    store,
    durability: { require: 'process' },
    leaseMs: 600_000,
    logger: SILENT_LOGGER,
    handlers: { other: () => undefined },
  });
  onTestFinished(() => receiver.stop());
  await receiver.ready();
  return {
    receiver,
    sign: (pair = key, payload = payloads.tool('completed')) =>
      signDelivery({ url: URL_GIVEN, body: payload, key: pair.privateJwk }),
    deliver: async ({ body, headers }) => said(await receiver.verifyAndDispatch(body, headers)),
  };
}

/** The store, with something to do before each call of it; what that returns is done once the call has returned. */
function around(store: Store, before: (name: string) => () => void): Store {
  return new Proxy(store, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const after = before(String(name));
        try {
          return Reflect.apply(member, target, args) as unknown;
        } finally {
          after();
        }
      };
    },
  });
}

/** The store, and the names of the methods that were called. */
function counted(store: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  const note = (name: string): (() => void) => {
    calls.push(name);
    return () => undefined;
  };
  return { store: around(store, note), calls };
}

describe('budget: store calls', () => {
  it('has one accept and one completion for a delivery, and one accept for its duplicate', async () => {
    const { store, calls } = counted(memoryStore());
    const { sign, deliver } = await desk(store);
    const payload = payloads.tool('completed');
    const [first, again] = [await sign(undefined, payload), await sign(undefined, payload)];
    calls.length = 0;
    expect(await deliver(first)).toBe(ACCEPTED);
    expect(calls).toEqual(['accept', 'complete']);
    calls.length = 0;
    expect(await deliver(again)).toBe('duplicate 200');
    expect(calls).toEqual(['accept']);
  });

  it('has none for a delivery that is refused, and reads nothing of its body', async () => {
    const { store, calls } = counted(memoryStore());
    const { sign, deliver } = await desk(store);
    const { body, ...rest } = await sign();
    const forged = { ...rest, body: new Uint8Array(body).fill(0x20, -1) };
    calls.length = 0;
    const parse = vi.spyOn(JSON, 'parse');
    const answer = await deliver(forged);
    const parsed = parse.mock.calls.length;
    parse.mockRestore();
    expect(answer).toBe('refused webhook_signature_digest_mismatch 401');
    expect(parsed).toBe(0);
    expect(calls).toEqual([]);
  });
});

/** After one accept in 64 what has expired is swept: at no accept of these tests. A store takes the function when it is made. */
function neverSweeps(): void {
  beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0.5));
  afterEach(() => void vi.restoreAllMocks());
}

describe('budget: round trips to the backend', () => {
  neverSweeps();
  /** What a store sends for some deliveries, after the first one, which registers the sender and loads or prepares statements. */
  const tripsOfSome = async (
    { store, tripsOf }: CountedStore,
    warm?: () => Promise<void>,
  ): Promise<readonly string[]> => {
    const { sign, deliver } = await desk(store);
    const [first, ...others] = await Promise.all(Array.from({ length: DELIVERIES + 1 }, () => sign()));
    expect(first && (await deliver(first))).toBe(ACCEPTED);
    await warm?.();
    return tripsOf(async () => {
      for (const each of others) expect(await deliver(each)).toBe(ACCEPTED);
    });
  };
  const COMMITS = Array.from({ length: 2 * DELIVERIES }, () => 'commit');

  it('Redis: one script an accept, one a completion, and nothing else', async () => {
    const trips = await tripsOfSome(await countedRedis());
    // Every 10 s the rows of one sender that have expired are deleted: another matter.
    expect(trips.filter((name) => name !== 'senders' && name !== 'sweep')).toEqual(COMMITS);
  });

  it('Postgres: one statement an accept, one a completion', async () => {
    expect(await tripsOfSome(await countedPostgres())).toEqual(COMMITS);
  });

  it('MySQL: one call an accept, one a completion, prepared before', async () => {
    const mysql = await countedMysql();
    let before: unknown;
    const trips = await tripsOfSome(mysql, async () => {
      before = await mysql.prepared();
    });
    expect(trips).toEqual(COMMITS);
    expect(await mysql.prepared()).toEqual(before);
  });

  it('SQLite: one commit an accept, one a completion', async () => {
    const { file, remove } = tempFile();
    onTestFinished(remove);
    const handle = new DatabaseSync(file);
    onTestFinished(() => handle.close());
    const { sign, deliver } = await desk(sqliteStore(handle));
    const exec = vi.spyOn(handle, 'exec');
    for (let count = 1; count <= DELIVERIES; count += 1) {
      expect(await deliver(await sign())).toBe(ACCEPTED);
      expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT').length).toBe(2 * count);
    }
  });
});

describe('budget: what inbox.stats reads', () => {
  neverSweeps();
  const QUEUED = 30;
  const SENDERS = 3;
  /** What is sent for the numbers of some events. */
  const tripsOfStats = async ({ store, tripsOf }: CountedStore): Promise<readonly string[]> => {
    await store.open();
    for (let n = 0; n < QUEUED; n += 1) {
      const of = { key: `event-${n}`, sender: `https://seller-${n % SENDERS}.example/mcp` };
      await store.accept({ ...acceptRequest(of), mode: 'inbox' });
    }
    const { inbox } = store;
    if (!inbox) return expect.fail('the store has an inbox');
    const found: InboxStats[] = [];
    const trips = await tripsOf(async () => found.push(await statsOf(inbox, 10)));
    expect(found).toMatchObject([{ queued: QUEUED, leased: 0, dead: 0, isComplete: true }]);
    expect(found[0]?.senders.map(({ count }) => count)).toEqual(Array.from({ length: SENDERS }, () => 10));
    return trips;
  };

  it('one statement on Postgres and MySQL, however many events there are', async () => {
    expect(await tripsOfStats(await countedPostgres())).toHaveLength(1);
    expect(await tripsOfStats(await countedMysql())).toHaveLength(1);
  });

  it('Redis: of each sender its numbers, and what has expired goes before', async () => {
    const trips = await tripsOfStats(await countedRedis());
    const times = (name: string): number => trips.filter((one) => one === name).length;
    expect([times('senders'), times('counted'), times('sweep')]).toEqual([1, 2 * SENDERS, SENDERS]);
    expect(trips).toHaveLength(1 + 3 * SENDERS);
  });
});

describe('budget: keys', () => {
  it('imports each key once, however many deliveries it signs', async () => {
    // Keys of node:crypto are what is counted.
    vi.stubEnv('PROTO_WEBHOOKS_SODIUM', '0');
    onTestFinished(() => void vi.unstubAllEnvs());
    const other = await seller('seller-2');
    const created = vi.spyOn(nodeCrypto, 'createPublicKey');
    const imported = vi.spyOn(nodeCrypto.webcrypto.subtle, 'importKey');
    onTestFinished(() => {
      created.mockRestore();
      imported.mockRestore();
    });
    const { receiver, sign } = await desk(memoryStore(), other);
    const mine = await Promise.all(Array.from({ length: DELIVERIES }, () => sign()));
    const theirs = await Promise.all(Array.from({ length: DELIVERIES }, () => sign(other)));
    imported.mockClear();
    for (const { body, headers } of [...mine, ...theirs]) {
      expect(said(await receiver.verifyAndDispatch(body, headers))).toBe(ACCEPTED);
    }
    const points = created.mock.calls.map(([input]) => (input as { key: { x?: string } }).key.x);
    expect(points.filter((x) => x === other.publicJwk['x']).length).toBe(1);
    // The engine's self-test imports keys of its own, once; no key is imported twice.
    expect(new Set(points).size).toBe(points.length);
    expect(imported.mock.calls.length).toBe(0);
  });
});

describe('budget: the body', () => {
  it('is hashed once, decoded once, parsed once, and copied only by the store that keeps it', async () => {
    let watch: Watch | undefined;
    const store = around(memoryStore(), () => watch?.pause() ?? (() => undefined));
    const { sign, deliver } = await desk(store);
    expect(await deliver(await sign())).toBe(ACCEPTED);
    const signed = await sign();
    const delivery = { ...signed, body: new Uint8Array(signed.body) };
    watch = watchBody(delivery.body);
    const answer = await deliver(delivery);
    watch.end();
    expect(answer).toBe(ACCEPTED);
    // One hash is for check 11 and for the fingerprint that the store compares.
    expect(watch.seen).toEqual(['crypto.hash', 'TextDecoder.decode', 'JSON.parse']);
  });

  it('is hashed once, and nothing else but sender and key for the delivery id', async () => {
    const { sign, deliver } = await desk(memoryStore());
    expect(await deliver(await sign())).toBe(ACCEPTED);
    const signed = await sign();
    const hash = vi.spyOn(nodeCrypto, 'hash');
    const answer = await deliver(signed);
    const hashed = hash.mock.calls.map(([, data]) => (typeof data === 'string' ? data.split('\0')[0] : data));
    hash.mockRestore();
    expect(answer).toBe(ACCEPTED);
    expect(hashed).toEqual([signed.body, AGENT]);
  });

  it('would be seen copied: what the first test rests on', () => {
    const body = new Uint8Array(100);
    const { seen, end } = watchBody(body);
    body.slice();
    new Uint8Array(100).set(body);
    Buffer.from(body);
    Buffer.concat([body, body]);
    body.buffer.slice(0);
    const copy = new Uint8Array(body);
    structuredClone(body);
    // A view is no copy.
    const view = new Uint8Array(body.buffer, 1);
    end();
    expect([copy.length, view.length]).toEqual([100, 99]);
    expect(seen).toEqual([
      'bytes.slice',
      'bytes.set',
      'Buffer.from',
      'Buffer.concat',
      'arrayBuffer.slice',
      'new Uint8Array',
      'structuredClone',
    ]);
  });
});
