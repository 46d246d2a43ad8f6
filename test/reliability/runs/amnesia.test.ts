import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { migrate } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { said } from '../../receiver/setup.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import { ownSchema } from '../../stores/postgres-schemas.ts';
import { doorOf, newEvent } from '../faults/at-door.ts';
import { inThisForm, LONG } from '../form.ts';
import { print } from './figures.ts';

const EVENTS = LONG ? 500 : 10;

/** Where a store is, and how it goes away: an empty one is in its place until it is back. */
interface LosableStore {
  readonly store: () => Store;
  readonly away: () => Promise<void>;
  readonly back: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

const at = ownSchema();

const STORES: Readonly<Record<string, () => Promise<LosableStore>>> = {
  'SQLite, its volume unmounted': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-'));
    const mounted = join(folder, 'mounted');
    mkdirSync(mounted);
    return {
      store: () => sqliteStore(join(mounted, 'webhooks.db')),
      away: async () => {
        renameSync(mounted, join(folder, 'away'));
        mkdirSync(mounted);
      },
      back: async () => {
        rmSync(mounted, { recursive: true });
        renameSync(join(folder, 'away'), mounted);
      },
      remove: async () => rmSync(folder, { recursive: true }),
    };
  },
  'Postgres, another database': async () => ({
    store: () => at.store(),
    away: async () => {
      await at.sql(`ALTER SCHEMA ${at.schema} RENAME TO ${at.schema}_away`);
      await migrate(at.pools[0], { schema: at.schema });
    },
    back: async () => {
      await at.sql(`DROP SCHEMA ${at.schema} CASCADE`);
      await at.sql(`ALTER SCHEMA ${at.schema}_away RENAME TO ${at.schema}`);
    },
    remove: async () => undefined,
  }),
  'Redis, started empty': async () => {
    const server = await startServer(ON_DISK);
    const client = new Redis({ port: server.port, host: '127.0.0.1' });
    const swap = async (): Promise<void> => void (await client.call('SWAPDB', '0', '1'));
    return {
      store: () => redisStore({ client }),
      away: swap,
      back: swap,
      remove: async () => {
        client.disconnect();
        await server.remove();
      },
    };
  },
};

it.each(inThisForm(Object.keys(STORES), (name) => name.startsWith('SQLite')))(
  'lost store: %s: an empty store in place of the expected one handles nothing again, and is reported',
  async (name) => {
    const losable = await STORES[name]?.();
    if (!losable) throw new Error(name);
    const events = Array.from({ length: EVENTS }, newEvent);
    const codes = async (
      expectStoreId: string | undefined,
    ): Promise<{ told: Set<string>; handled: number; alarms: Set<string>; storeId?: string }> => {
      const door = await doorOf(losable.store(), { ...(expectStoreId !== undefined && { expectStoreId }) });
      const ready = await door.receiver.ready().catch(() => undefined);
      const told = new Set<string>();
      for (const event of events) told.add(said(await door.deliver(event)));
      await door.receiver.stop();
      return {
        told,
        handled: door.seen.length,
        alarms: new Set(door.alarms.map(({ code }) => code)),
        ...(ready?.storeId !== undefined && { storeId: ready.storeId }),
      };
    };
    try {
      const first = await codes(undefined);
      expect(first).toMatchObject({ told: new Set(['accepted 200']), handled: EVENTS });
      expect(first.alarms).toEqual(new Set(['store_created']));
      await losable.away();
      const empty = await codes(first.storeId);
      // It was made new: another one stood in the place of the first.
      const faults = empty.alarms.has('store_created') ? 1 : 0;
      expect(empty.told).toEqual(new Set(['unavailable misconfigured 503']));
      expect(empty.alarms).toEqual(new Set(['store_created', 'misconfigured']));
      await losable.back();
      const again = await codes(first.storeId);
      expect(again).toMatchObject({
        told: new Set(['duplicate 200']),
        alarms: new Set(),
        storeId: first.storeId,
      });
      const twice = empty.handled + again.handled;
      print({
        run: `amnesia: ${name}`,
        events: EVENTS,
        faults,
        lost: EVENTS - first.handled,
        twice,
      });
      expect(twice).toBe(0);
    } finally {
      await losable.remove();
    }
  },
  LONG ? 300_000 : 60_000,
);
