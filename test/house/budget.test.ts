import nodeCrypto, { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import type { PoolConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { describe, expect, inject, onTestFinished, it, vi } from 'vitest';
import type { Receiver } from '../../src/options.ts';
import { createReceiver } from '../../src/receiver.ts';
import { generateKey, type KeyPair, signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import type { Store } from '../../src/stores/contract.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { samplePayloads } from '../../src/testing/payloads.ts';
import { AGENT, said, URL_GIVEN } from '../receiver/setup.ts';
import { testDatabase } from '../stores/mysql-databases.ts';
import { testSchema } from '../stores/postgres-schemas.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import { startRedis } from '../support/redis.ts';
import { sharedMariadb } from '../support/shared-mariadb.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
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
    requireDurability: 'process',
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

describe('budget: round trips to the backend', () => {
  it('Redis: one script an accept, one a completion, and nothing else', async () => {
    const { url, stop } = await startRedis();
    onTestFinished(stop);
    const prefix = `budget:${randomUUID()}:`;
    const client = new Redis(url);
    const watcher = await client.monitor();
    onTestFinished(() => {
      watcher.disconnect();
      client.disconnect();
    });
    const seen: string[][] = [];
    // What a script does inside the server comes from `lua` and is no round trip.
    watcher.on('monitor', (_time: string, args: string[], source: string) => {
      if (source !== 'lua') seen.push(args);
    });
    const shown = async (marker: string): Promise<void> => {
      await client.echo(marker);
      await expect.poll(() => seen.some((args) => args.includes(marker))).toBe(true);
    };
    // After one accept in 64 what has expired is swept.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => void vi.restoreAllMocks());
    const { sign, deliver } = await desk(redisStore({ client, prefix }));
    const deliveries = await Promise.all(Array.from({ length: DELIVERIES + 1 }, () => sign()));
    const [first, ...others] = deliveries;
    // The first one of a sender registers it, and loads the scripts.
    expect(first && (await deliver(first))).toBe(ACCEPTED);
    await shown('warm');
    seen.length = 0;
    for (const each of others) expect(await deliver(each)).toBe(ACCEPTED);
    await shown('done');
    // What processes tell each other every 10 s is another matter.
    const ours = seen.filter((args) =>
      args.some((arg) => arg.startsWith(prefix) && !arg.startsWith(`${prefix}{registry}`)),
    );
    expect(ours.map(([command]) => command?.toLowerCase())).toEqual(
      Array.from({ length: 2 * DELIVERIES }, () => 'evalsha'),
    );
  });

  it('Postgres: one statement an accept, one a completion', async () => {
    const schema = await testSchema(await sharedPostgres(inject('shared')));
    onTestFinished(schema.drop);
    // After one accept in 64 what has expired is swept.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => void vi.restoreAllMocks());
    const { sign, deliver } = await desk(schema.store());
    const [first, ...others] = await Promise.all(Array.from({ length: DELIVERIES + 1 }, () => sign()));
    expect(first && (await deliver(first))).toBe(ACCEPTED);
    const query = vi.spyOn(Client.prototype, 'query');
    onTestFinished(() => query.mockRestore());
    for (const each of others) expect(await deliver(each)).toBe(ACCEPTED);
    expect(query.mock.calls.length).toBe(2 * DELIVERIES);
  });

  it('MySQL: one call an accept, one a completion, prepared before', async () => {
    // One connection, which has prepared its statements after the first delivery.
    const { pools, store, drop } = await testDatabase(await sharedMariadb(inject('shared')), 1);
    onTestFinished(drop);
    const [pool] = pools;
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => void vi.restoreAllMocks());
    const { sign, deliver } = await desk(store(pool));
    const [first, ...others] = await Promise.all(Array.from({ length: DELIVERIES + 1 }, () => sign()));
    expect(first && (await deliver(first))).toBe(ACCEPTED);
    const prepared = async (): Promise<unknown> =>
      (await pool.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"))[0];
    const before = await prepared();
    const connection = await pool.getConnection();
    connection.release();
    const proto = Object.getPrototypeOf(connection) as PoolConnection;
    const execute = vi.spyOn(proto, 'execute');
    const query = vi.spyOn(proto, 'query');
    for (const each of others) expect(await deliver(each)).toBe(ACCEPTED);
    const sent = execute.mock.calls.map(([given]) => (given as unknown as { readonly sql: string }).sql);
    expect(query).not.toHaveBeenCalled();
    vi.restoreAllMocks();
    // The look at the schema's version, every 10 s, is another matter.
    const ours = sent.filter((sql) => !/webhook_schema/.test(sql));
    expect(ours).toHaveLength(2 * DELIVERIES);
    for (const sql of ours) expect(sql).toMatch(/^CALL \S+webhook_commit\(/);
    expect(await prepared()).toEqual(before);
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

describe('budget: keys', () => {
  it('imports each key once, however many deliveries it signs', async () => {
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
  it('is hashed once, decoded once, parsed once, and copied only for SIMD and by the store that keeps it', async () => {
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
    // One hash is for check 11 and for the fingerprint that the store compares; the copy goes into the counter's memory.
    expect(watch.seen).toEqual(['crypto.hash', 'TextDecoder.decode', 'bytes.set', 'JSON.parse']);
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
