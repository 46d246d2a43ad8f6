import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { PoolConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { expect, inject, onTestFinished, vi } from 'vitest';
import type { Store } from '../../src/index.ts';
import type { StoreOptions } from '../../src/stores/index.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { nodeDigests, scriptsOf } from '../../src/stores/redis/for-tests.ts';
import { testDatabase } from '../stores/mysql-databases.ts';
import { testSchema } from '../stores/postgres-schemas.ts';
import { startRedis } from '../support/redis.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { sharedMariadb } from '../support/shared-mariadb.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

/** A store of this test on a real server. */
export interface CountedStore {
  readonly store: Store;
  /**
   * What the store sends while `work` runs, in its order: names of scripts, functions or procedures, else whole commands. Without
   * the look at the schema, every 10 s, and on Redis without what processes report to each other, every 10 s.
   */
  readonly tripsOf: (work: () => Promise<unknown>) => Promise<readonly string[]>;
}

const SCRIPTS = new Map(Object.entries(scriptsOf(nodeDigests())).map(([name, { sha }]) => [sha, name]));

const scriptName = ([command = '', sha = '']: readonly string[]): string =>
  command.toLowerCase() === 'evalsha' ? (SCRIPTS.get(sha) ?? sha) : command;

/** The registry's keys are of the schema and of the processes; `senders`, which a look for due rows begins with, reads them too. */
const isCounted = (args: readonly string[], prefix: string): boolean =>
  scriptName(args) === 'senders' ||
  args.some((arg) => arg.startsWith(prefix) && !arg.startsWith(`${prefix}{registry}`));

export async function countedRedis(options: StoreOptions = {}): Promise<CountedStore> {
  const { url, stop } = await startRedis();
  onTestFinished(stop);
  const prefix = `budget:${randomUUID()}:`;
  const client = new Redis(url);
  const watcher = await client.monitor();
  const seen: string[][] = [];
  // What a script does inside the server comes from `lua` and is no round trip.
  watcher.on('monitor', (_time: string, args: string[], source: string) => {
    if (source !== 'lua') seen.push(args);
  });
  const store = redisStore({ client, prefix, timeoutMs: PATIENT_MS, ...options });
  onTestFinished(async () => {
    await store.close();
    watcher.disconnect();
    client.disconnect();
  });
  const shown = async (): Promise<void> => {
    const marker = randomUUID();
    await client.echo(marker);
    await expect.poll(() => seen.some((args) => args.includes(marker))).toBe(true);
  };
  return {
    store,
    tripsOf: async (work) => {
      await shown();
      seen.length = 0;
      await work();
      await shown();
      return seen.filter((args) => isCounted(args, prefix)).map(scriptName);
    },
  };
}

const statementName = (sql: string): string => /\bwebhook_(\w+)/.exec(sql)?.[1] ?? sql;

const isNoLook = (name: string): boolean => name !== 'schema';

/** Statements of the pool of `pg` are the store's alone. */
export async function countedPostgres(options: StoreOptions = {}): Promise<CountedStore> {
  const schema = await testSchema(await sharedPostgres(inject('shared')));
  onTestFinished(schema.drop);
  return {
    store: schema.store(undefined, options),
    tripsOf: async (work) => {
      const query = vi.spyOn(Client.prototype, 'query');
      await work();
      const sent = query.mock.calls.map(([text]) => statementName(text));
      query.mockRestore();
      return sent.filter(isNoLook);
    },
  };
}

/** Of MySQL: on one connection, which prepares each statement when it is first sent. */
export interface CountedMysql extends CountedStore {
  /** How many statements the connection has prepared. */
  readonly prepared: () => Promise<unknown>;
}

export async function countedMysql(options: StoreOptions = {}): Promise<CountedMysql> {
  const { pools, store, drop } = await testDatabase(await sharedMariadb(inject('shared')), 1);
  onTestFinished(drop);
  const [pool] = pools;
  return {
    store: store(pool, options),
    prepared: async () => (await pool.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"))[0],
    tripsOf: async (work) => {
      const connection = await pool.getConnection();
      connection.release();
      const proto = Object.getPrototypeOf(connection) as PoolConnection;
      const spies = [vi.spyOn(proto, 'execute'), vi.spyOn(proto, 'query')];
      await work();
      const calls = spies.flatMap(({ mock }) =>
        mock.calls.map(([given], nth) => ({ given, order: mock.invocationCallOrder[nth] ?? 0 })),
      );
      for (const spy of spies) spy.mockRestore();
      return calls
        .toSorted((a, b) => a.order - b.order)
        .map(({ given }) => statementName(typeof given === 'string' ? given : (given as { sql: string }).sql))
        .filter(isNoLook);
    },
  };
}
