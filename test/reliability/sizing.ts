import { randomBytes, randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Store } from '../../src/index.ts';
import type { AcceptRequest } from '../../src/stores/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { acceptRequest, leaseOf } from '../stores/requests.ts';
import { testDatabase } from '../stores/mysql-databases.ts';
import { testSchema } from '../stores/postgres-schemas.ts';
import { clientOf } from '../stores/redis-harness.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import { startServer as startMariadb } from '../support/mariadb.ts';
import { startServer as startRedisServer, ON_DISK } from '../support/redis.ts';

/** Bytes: `packed` is what it takes at least; others where the backend takes more for a while. */
export type Sizes = { readonly packed: number } & Readonly<Record<string, number>>;

/** A new store, and what it takes of its backend. */
export interface Measured {
  readonly store: Store;
  readonly sizes: () => Promise<Sizes>;
  readonly remove: () => Promise<void>;
}

export async function sqliteFile(): Promise<Measured> {
  const { file, remove } = tempFile();
  const db = new DatabaseSync(file);
  const number = (pragma: string): number => Number(Object.values(db.prepare(pragma).get() ?? {})[0]);
  return {
    store: sqliteStore(db),
    sizes: async () => {
      const pages = number('PRAGMA page_count') - number('PRAGMA freelist_count');
      return { packed: pages * number('PRAGMA page_size') };
    },
    remove: async () => {
      db.close();
      remove();
    },
  };
}

const RELATIONS = `SELECT sum(pg_total_relation_size(c.oid))::text AS bytes FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`;
const TABLES = ['row', 'tally'].map((name) => `webhook_${name}`);

export async function postgresSchema(url: string): Promise<Measured> {
  const at = await testSchema(url);
  const bytes = async (): Promise<number> => Number((await at.sql(RELATIONS, [at.schema]))[0]?.['bytes']);
  return {
    store: at.store(),
    sizes: async () => {
      const before = await bytes();
      // Indexes shrink only by this; autovacuum frees their rows for others as it does the table's.
      for (const table of TABLES) await at.sql(`VACUUM FULL ${table}`);
      return { packed: await bytes(), 'before any vacuum': before };
    },
    remove: at.drop,
  };
}

/** They are all in memory while few are measured; statistics of the tables are minutes old. */
const PAGES = `SELECT CAST(COUNT(*) * @@innodb_page_size AS CHAR) AS bytes FROM information_schema.innodb_buffer_page
  WHERE page_type = 'INDEX' AND number_records > 0 AND table_name IN (?, ?)`;

/** On a server of its own: to look at its pages holds up its other users. */
export async function mysqlTables(): Promise<Measured> {
  const server = await startMariadb();
  const at = await testDatabase(server.url);
  // Pages of indexes that hold rows: files grow by megabytes.
  const bytes = async (): Promise<number> => {
    return Number(
      (
        await at.sql(
          PAGES,
          TABLES.map((name) => `\`${at.database}\`.\`${name}\``),
        )
      )[0]?.['bytes'],
    );
  };
  return {
    store: at.store(),
    sizes: async () => {
      const before = await bytes();
      await at.sql(`OPTIMIZE TABLE ${TABLES.join(', ')}`);
      return { packed: await bytes(), 'before OPTIMIZE TABLE': before };
    },
    remove: async () => {
      await at.drop();
      await server.remove();
    },
  };
}

export async function redisMemory(): Promise<Measured> {
  const server = await startRedisServer(ON_DISK);
  const client = clientOf.port(server.port);
  return {
    store: redisStore({ client }),
    sizes: async () => {
      const info = await client.info('memory');
      return { packed: Number(/used_memory:([0-9]+)/.exec(info)?.[1]) };
    },
    remove: async () => {
      client.disconnect();
      await server.remove();
    },
  };
}

/** As sellers name things. */
function request(mode: AcceptRequest['mode'], body = '{}'): AcceptRequest {
  const { nonce: _nonce, ...rest } = acceptRequest({ key: randomUUID(), body });
  return { ...rest, mode, limits: { ...rest.limits, maxPendingBytesPerSender: Number.MAX_SAFE_INTEGER } };
}

async function completed(store: Store, made: AcceptRequest): Promise<void> {
  await store.accept(made);
  await store.complete({ ...leaseOf(made), retentionMs: made.retentionMs });
}

/** As a worker does; several at once may find what another one queued. */
async function workOff(store: Store): Promise<void> {
  const { retry, retentionMs } = request('inbox');
  const leaseMs = 600_000;
  const owner = randomUUID();
  const leased = await store.inbox?.lease({ owner, max: 4, leaseMs, retry, retentionMs, senders: [] });
  for (const { sender, key } of leased?.events ?? [])
    await store.complete({ sender, key, owner, retentionMs });
}

/** What one of each takes room for. */
export const KINDS: Readonly<Record<string, (store: Store, n: number) => Promise<unknown>>> = {
  'a nonce': (store) => {
    const { event: _event, ...rest } = request('inline');
    const nonce = { keyid: 'seller-2026', nonce: randomBytes(16).toString('base64url') };
    return store.accept({ ...rest, nonce: { ...nonce, nowMs: 0, expiresAtMs: 360_000 } });
  },
  'an event that waits, 1 KB': (store) => store.accept(request('inbox', 'x'.repeat(1024))),
  'an event that waited, 1 KB, and is done': async (store) => {
    await store.accept(request('inbox', 'x'.repeat(1024)));
    await workOff(store);
  },
  'an event that is done': (store) => completed(store, request('inline')),
  'an event that is done, and its task': (store, n) => {
    const made = request('inline');
    const instant = '000001767225600.';
    const task = { id: `task-${n}-of-the-seller`, instant, instantMs: 1_767_225_600_000, terminal: false };
    return completed(store, { ...made, ...(made.event && { event: { ...made.event, task } }) });
  },
};

const AT_ONCE = 64;

/** @returns bytes of one. */
export async function bytesOfOne(
  open: () => Promise<Measured>,
  make: (store: Store, n: number) => Promise<unknown>,
  count: number,
): Promise<Sizes> {
  const { store, sizes, remove } = await open();
  try {
    await store.open();
    // The sender, the first pages, the scripts.
    await make(store, -1);
    const before = await sizes();
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let n = next++; n < count; n = next++) await make(store, n);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    const after = await sizes();
    const each = Object.entries(after).map(([name, bytes]) => [
      name,
      Math.round((bytes - (before[name] ?? 0)) / count),
    ]);
    return Object.fromEntries(each) as Sizes;
  } finally {
    await store.close();
    await remove();
  }
}
