import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/index.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { startRedis } from '../support/redis.ts';
import { ownSchema } from './postgres-schemas.ts';
import { newPrefix } from './redis-harness.ts';

/** What it says first, and then. */
async function twice(store: Store): Promise<{ id: string; isNew: readonly boolean[] }> {
  await store.open();
  const said = [await store.identity?.(), await store.identity?.()];
  await store.close();
  expect(said[1]?.id).toBe(said[0]?.id);
  return { id: said[0]?.id ?? '', isNew: said.map((each) => each?.isNew ?? false) };
}

const folderIn = (parent: string): string => mkdtempSync(join(parent, 'proto-webhooks-'));

describe('store_created is reported once, by the first call on a new store', () => {
  it('SQLite', async () => {
    const folder = folderIn(tmpdir());
    const file = join(folder, 'webhooks.db');
    const made = await twice(sqliteStore(file));
    expect(made.isNew).toEqual([true, false]);
    expect(await twice(sqliteStore(file))).toEqual({ id: made.id, isNew: [false, false] });
    expect((await twice(sqliteStore(':memory:'))).isNew).toEqual([false, false]);
    rmSync(folder, { recursive: true });
  });

  it('Redis: the identity’s key never expires, and only one of two stores that open at once reports it', async () => {
    const server = await startRedis();
    const client = new Redis(server.url);
    const prefix = newPrefix();
    const [one, two] = await Promise.all([
      twice(redisStore({ client, prefix, timeoutMs: PATIENT_MS })),
      twice(redisStore({ client, prefix, timeoutMs: PATIENT_MS })),
    ]);
    expect(one.id).toBe(two.id);
    expect([...one.isNew, ...two.isNew].filter(Boolean)).toHaveLength(1);
    expect(await client.ttl(`${prefix}{registry}:id`)).toBe(-1);
    expect(await twice(redisStore({ client, prefix, timeoutMs: PATIENT_MS }))).toEqual({
      id: one.id,
      isNew: [false, false],
    });
    client.disconnect();
    await server.stop();
  });

  describe('Postgres', () => {
    const at = ownSchema();
    it('is made by migrate() and reported by the first call', async () => {
      const made = await twice(at.store());
      expect(made.isNew).toEqual([true, false]);
      expect(await twice(at.store(at.pools[1]))).toEqual({ id: made.id, isNew: [false, false] });
    });
  });
});

// Linux has it; elsewhere there is none to be asked.
describe.runIf(existsSync('/dev/shm'))('SQLite on tmpfs', () => {
  it('has durability process, not disk, for files in memory-backed folders', async () => {
    const folder = folderIn('/dev/shm');
    const store = sqliteStore(join(folder, 'webhooks.db'));
    await store.open();
    expect(await store.durability()).toBe('process');
    await store.close();
    rmSync(folder, { recursive: true });
  });
});
