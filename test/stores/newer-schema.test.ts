import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { type Alarm, ConfigError, Fault, type Store } from '../../src/index.ts';
import type { StoreInbox } from '../../src/stores/index.ts';
import { SCHEMA_VERSION } from '../../src/stores/postgres/for-tests.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { SCHEMA_VERSION as REDIS_VERSION } from '../../src/stores/redis/for-tests.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { KNOWN } from '../../src/stores/sqlite/for-tests.ts';
import { testReceiver, payloads, said } from '../receiver/setup.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { startRedis } from '../support/redis.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { testSchema } from './postgres-schemas.ts';
import { newPrefix } from './redis-harness.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from './requests.ts';
import { tempFile } from './sqlite-files.ts';

/** A store, and somebody else with another version of the package on its backend. */
interface Backend {
  readonly store: Store & { readonly inbox: StoreInbox };
  /** Another process's, not open. */
  readonly again: () => Store;
  /** The version that this package knows. */
  readonly version: number;
  /** As another version's `open` or `migrate` leaves it. */
  readonly setVersion: (version: number) => unknown;
  /** As this one's does. */
  readonly known: () => unknown;
}

interface Clock {
  offsetMs: number;
}

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

const BACKENDS: Readonly<Record<string, (clock: Clock) => Promise<Backend>>> = {
  sqlite: async (clock) => {
    const { file, remove } = tempFile();
    const other = new DatabaseSync(file);
    undo.push(remove, () => other.close());
    const make = (): Backend['store'] => sqliteStore(file, { clockOffsetMs: () => clock.offsetMs });
    const setVersion = (version: number): void =>
      other.exec(`UPDATE webhook_schema SET version = ${version}`);
    return { store: make(), again: make, version: KNOWN, setVersion, known: () => setVersion(KNOWN) };
  },
  postgres: async (clock) => {
    const at = await testSchema(await sharedPostgres(inject('shared')));
    undo.push(at.drop);
    const make = (): Backend['store'] => at.store(at.pools[0], { clockOffsetMs: () => clock.offsetMs });
    const setVersion = (version: number): unknown => at.sql(`UPDATE webhook_schema SET version = ${version}`);
    const known = (): unknown => setVersion(SCHEMA_VERSION);
    return { store: make(), again: make, version: SCHEMA_VERSION, setVersion, known };
  },
  redis: async (clock) => {
    const { url, stop } = await startRedis();
    const client = new Redis(url);
    const prefix = newPrefix();
    undo.push(stop, () => client.disconnect());
    const make = (): Backend['store'] =>
      redisStore({ client, prefix, clockOffsetMs: () => clock.offsetMs, timeoutMs: PATIENT_MS });
    const key = `${prefix}{registry}:v`;
    return {
      store: make(),
      again: make,
      version: REDIS_VERSION,
      setVersion: (version) => client.set(key, version),
      known: () => client.del(key),
    };
  },
};

/** Longer than a process may take to notice. */
const LATER_MS = 10_000;

const misconfigured = (known: number): Readonly<Record<'name' | 'code' | 'message', unknown>> => ({
  name: 'Fault',
  code: 'misconfigured',
  message: expect.stringContaining(
    `schema version ${known + 1}, this package knows ${known}. Upgrade proto-webhooks in this process`,
  ),
});

type Opened = Backend & { readonly clock: Clock };

async function openedBackend(name: string): Promise<Opened> {
  const clock: Clock = { offsetMs: 0 };
  const backend = await BACKENDS[name]?.(clock);
  if (!backend) throw new Error(name);
  await backend.store.open();
  undo.push(() => backend.store.close());
  return { ...backend, clock };
}

describe.each(Object.keys(BACKENDS))('a newer, unknown schema: %s', (name) => {
  const opened = (): Promise<Opened> => openedBackend(name);

  it('is a ConfigError at open(), which succeeds when the version is known again', async () => {
    const { again, version, setVersion, known } = await opened();
    await setVersion(version + 1);
    const store = again();
    await expect(store.open()).rejects.toThrow(ConfigError);
    await expect(store.open()).rejects.toThrow(
      `version ${version + 1}, this package knows ${version}. Upgrade`,
    );
    await known();
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
  });

  it('stops every call of a running store until the version is known again', async () => {
    const { store, version, setVersion, known, clock } = await opened();
    const held = { ...acceptRequest(), leaseMs: 600_000 };
    await store.accept(held);
    const lease = leaseOf(held);
    const { retry, leaseMs } = held;
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      accept: () => store.accept(acceptRequest({ key: randomUUID() })),
      renew: () => store.renew({ ...lease, leaseMs }),
      peek: () => store.peek(lease.sender, lease.key),
      lease: () =>
        store.inbox.lease({
          owner: randomUUID(),
          max: 1,
          leaseMs,
          retry,
          retentionMs: RETENTION_MS,
          senders: [],
        }),
      list: () => store.inbox.list({ state: 'leased', limit: 1 }),
      inspect: () => store.inbox.inspect(lease.sender, lease.key),
      overdueMs: async () => store.inbox.overdueMs?.(),
      fail: () => store.fail({ ...lease, permanent: false, retry, backoffMs: 0, retentionMs: RETENTION_MS }),
      ...(store.transaction && {
        transaction: async () =>
          store.transaction?.({ ...lease, retentionMs: RETENTION_MS }, () => undefined),
      }),
      complete: () => store.complete({ ...lease, retentionMs: RETENTION_MS }),
    };
    await setVersion(version + 1);
    clock.offsetMs += LATER_MS;
    for (const [call, run] of Object.entries(calls)) {
      const error = await run().catch((reason: unknown) => reason);
      expect(error, call).toMatchObject(misconfigured(version));
      expect(error, call).toBeInstanceOf(Fault);
    }
    await expect(store.durability()).rejects.toThrow(ConfigError);
    await known();
    // At once, and nothing was done meanwhile: the lease is as it was.
    expect(await store.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
    expect(await store.accept(acceptRequest({ key: randomUUID() }))).toMatchObject({ kind: 'won' });
    await store.durability();
  });

  it('answers deliveries 503 misconfigured with rate-limited alarms, and 200 when it is known again', async () => {
    const { store, version, setVersion, known, clock } = await opened();
    let now = Date.now();
    // That it was made is another alarm.
    await store.identity?.();
    const { deliver, alarms, seen } = await testReceiver({ store, now: () => now });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    await setVersion(version + 1);
    clock.offsetMs += LATER_MS;
    for (let n = 0; n < 3; n += 1) {
      expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    }
    expect(alarms).toMatchObject([{ code: 'misconfigured', message: misconfigured(version).message }]);
    now += 60_000;
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(alarms.slice(1)).toMatchObject([{ code: 'misconfigured', suppressed: 2 }]);
    await known();
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(seen).toHaveLength(2);
    expect(alarms).toHaveLength(2);
  });

  it('raises an alarm in a worker and makes ready() reject', async () => {
    const { store, version, setVersion, known, clock } = await opened();
    const alarms: Alarm[] = [];
    await store.identity?.();
    const { receiver } = await testReceiver({
      store,
      mode: 'inbox',
      worker: { pollMs: 50 },
      onAlarm: (alarm) => alarms.push(alarm),
    });
    await receiver.start();
    undo.push(() => receiver.stop());
    await setVersion(version + 1);
    clock.offsetMs += LATER_MS;
    await expect
      .poll(() => alarms)
      .toMatchObject([{ code: 'misconfigured', message: misconfigured(version).message }]);
    await expect(receiver.ready()).rejects.toThrow(ConfigError);
    await known();
    await receiver.ready();
  });
});

describe.each(Object.keys(BACKENDS))('a schema from before the first release: %s', (name) => {
  it.each([1, 2, 3])('version %i is refused by open() and by a running store', async (version) => {
    const { store, again, version: needed, setVersion, known, clock } = await openedBackend(name);
    await store.identity?.();
    const { deliver, alarms, receiver } = await testReceiver({ store });
    await setVersion(version);
    const message = expect.stringMatching(
      new RegExp(
        `^${name}Store: the (database|keys) ha(s|ve) schema version ${version}, this package needs ${needed}, and nothing upgrades it\\. Let the build that made it finish its events, then give this process a (database|schema|prefix) of its own\\.$`,
      ),
    ) as unknown;
    for (let n = 0; n < 2; n += 1) {
      await expect(again().open()).rejects.toMatchObject({
        name: 'ConfigError',
        code: 'config_error',
        message,
      });
    }
    clock.offsetMs += LATER_MS;
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(alarms).toMatchObject([{ code: 'misconfigured', message }]);
    await expect(receiver.ready()).rejects.toMatchObject({ name: 'ConfigError', message });
    await known();
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  });
});
