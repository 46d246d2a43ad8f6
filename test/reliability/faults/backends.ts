import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { inject } from 'vitest';
import { mysqlStore } from '../../../src/stores/mysql.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import type { Store } from '../../../src/index.ts';
import type { StoreInbox } from '../../../src/stores/index.ts';
import { Redis } from 'ioredis';
import { randomBytes } from 'node:crypto';
import { testDatabase } from '../../stores/mysql-databases.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { startProxy } from '../../support/tcp-proxy.ts';

/** A busy machine is no fault. */
export const LONG_MS = 30_000;

export type Inboxed = Store & { readonly inbox: StoreInbox };

/** A store behind a proxy, on a server, and a look past the proxy. */
export interface Backend {
  readonly proxy: TcpProxy;
  /** For the receiver. */
  readonly store: Inboxed;
  /** Of a connection of its own: what is truly there. */
  readonly judge: Inboxed;
  readonly advance: (ms: number) => void;
  /** How often the event was completed; undefined where the server cannot count. */
  readonly completions: (key: string) => Promise<number | undefined>;
  readonly end: () => Promise<void>;
}

/** How a test gets one. @param timeoutMs of the store's operations. */
export type OpenBackend = (timeoutMs: number) => Promise<Backend>;

function poolOf(url: string, timeoutMs: number, port?: number): Pool {
  const at = new URL(url);
  if (port !== undefined) Object.assign(at, { hostname: '127.0.0.1', port: String(port) });
  const pool = new Pool({ connectionString: at.href, max: 3, connectionTimeoutMillis: timeoutMs });
  pool.on('error', () => undefined);
  return pool;
}

/** Counts completions in the database, also those that no process lived to hear of. */
export const COUNTING = `
CREATE TABLE completed (key text);
CREATE FUNCTION count_completed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO completed VALUES (NEW.id);
  RETURN NEW;
END $$;
CREATE TRIGGER count_completed AFTER UPDATE ON webhook_row FOR EACH ROW
  WHEN (NEW.kind = 'r' AND NEW.data::json ->> 'state' = 'applied' AND OLD.data::json ->> 'state' <> 'applied') EXECUTE FUNCTION count_completed()`;

/** On a server of the whole run, in a schema of its own. */
export async function postgresBackend(timeoutMs: number): Promise<Backend> {
  const url = await sharedPostgres(inject('shared'));
  const { hostname, port } = new URL(url);
  const schema = `test_${randomBytes(8).toString('hex')}`;
  const proxy = await startProxy(Number(port === '' ? 5432 : port), hostname);
  const [direct, through] = [poolOf(url, LONG_MS), poolOf(url, timeoutMs, proxy.port)];
  await migrate(direct, { schema });
  const owner = await direct.connect();
  await owner.query(`SET search_path TO ${schema}; ${COUNTING}`);
  let offsetMs = 0;
  const options = { schema, clockOffsetMs: (): number => offsetMs };
  const judge = postgresStore({ pool: direct, timeoutMs: LONG_MS, ...options });
  await judge.open();
  return {
    proxy,
    store: postgresStore({ pool: through, timeoutMs, ...options }),
    judge,
    advance: (ms) => {
      offsetMs += ms;
    },
    completions: async (key) => {
      const { rowCount } = await owner.query('SELECT FROM completed WHERE key = $1', [key]);
      return rowCount ?? 0;
    },
    end: async () => {
      await judge.close();
      await owner.query(`DROP SCHEMA ${schema} CASCADE`);
      owner.release();
      await proxy.close();
      await Promise.all([direct.end(), through.end()]);
    },
  };
}

/** The same, as MariaDB has it. */
export const COUNTING_MYSQL: readonly string[] = [
  'CREATE TABLE completed (event VARBINARY(1536) NOT NULL)',
  `CREATE TRIGGER count_completed AFTER UPDATE ON webhook_row FOR EACH ROW
    IF NEW.kind = 'r' AND JSON_VALUE(CONVERT(NEW.data USING utf8mb4), '$.state') = 'applied'
      AND JSON_VALUE(CONVERT(OLD.data USING utf8mb4), '$.state') <> 'applied' THEN
      INSERT INTO completed VALUES (NEW.id);
    END IF`,
];

/** On a server of the whole run, in a database of its own. */
export async function mysqlBackend(timeoutMs: number): Promise<Backend> {
  const at = await testDatabase(await sharedMariadb(inject('shared')), 3);
  for (const text of COUNTING_MYSQL) await at.sql(text);
  const url = new URL(at.url);
  const proxy = await startProxy(Number(url.port === '' ? 3306 : url.port), url.hostname);
  Object.assign(url, { hostname: '127.0.0.1', port: String(proxy.port) });
  const through = createPool({ uri: url.href, connectionLimit: 3 });
  let offsetMs = 0;
  const clockOffsetMs = (): number => offsetMs;
  const judge = at.store(at.pools[0], { timeoutMs: LONG_MS, clockOffsetMs });
  await judge.open();
  return {
    proxy,
    store: mysqlStore({ pool: through, timeoutMs, clockOffsetMs }),
    judge,
    advance: (ms) => {
      offsetMs += ms;
    },
    completions: async (key) => (await at.sql('SELECT event FROM completed WHERE event = ?', [key])).length,
    end: async () => {
      await judge.close();
      await proxy.close();
      // Its connections were reset with the proxy.
      await through.end().catch(() => undefined);
      await at.drop();
    },
  };
}

/** On a server at `port`, under a prefix of its own. */
export async function redisBackend(port: number, timeoutMs: number): Promise<Backend> {
  const prefix = `test-${randomBytes(8).toString('hex')}:`;
  const proxy = await startProxy(port);
  const client = (at: number): Redis => new Redis({ port: at, host: '127.0.0.1', lazyConnect: true });
  let offsetMs = 0;
  const options = { prefix, waitTimeoutMs: LONG_MS, clockOffsetMs: (): number => offsetMs };
  const judge = redisStore({ client: client(port), timeoutMs: LONG_MS, ...options });
  await judge.open();
  return {
    proxy,
    store: redisStore({ client: client(proxy.port), timeoutMs, ...options }),
    judge,
    advance: (ms) => {
      offsetMs += ms;
    },
    completions: async () => undefined,
    end: async () => {
      await judge.close();
      await proxy.close();
    },
  };
}
