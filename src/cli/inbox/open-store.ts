import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Store, StoreInbox, StoreRegistrations } from '../../stores/store.ts';
import { type MysqlPool, mysqlStore } from '../../stores/mysql.ts';
import { type PgPool, postgresStore } from '../../stores/postgres.ts';
import { type RedisClient, redisStore } from '../../stores/redis.ts';
import { type CliContext, UsageError } from '../shell.ts';
import { messageOf } from '../../shared/errors.ts';

/** Two, for a name alone may be another's. Both are made in one transaction (`stores/sqlite/schema`); `record` by version 1. */
const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table'
  AND name IN ('webhook_schema', 'webhook_row', 'webhook_record')`;

/** For another connection that recovers or checkpoints the file just now, ms. */
const BUSY_MS = 2000;

/** @param open makes a connection that can only read: what is looked into may be another application's database. */
function tablesOf(open: () => DatabaseSync): number {
  const db = open();
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    return db.prepare(TABLES).all().length;
  } finally {
    db.close();
  }
}

/**
 * Refuses a file that no receiver has stored in: a store that is opened makes its tables and sets WAL, and in another
 * application's database nobody asked for that.
 * @throws UsageError
 */
function requireTables(given: string, open: () => DatabaseSync): void {
  let found: number;
  try {
    found = tablesOf(open);
  } catch (error) {
    const reason = messageOf(error);
    throw new UsageError(`${given}: ${reason}. Expected the database that the receiver's sqliteStore has.`);
  }
  if (found < 2) {
    throw new UsageError(
      `${given}: it has no tables of sqliteStore. Expected the database that the receiver's sqliteStore has; nothing was changed.`,
    );
  }
}

/** Which store; exactly one. `true`: the URL is in the environment. */
export interface StoreFlags {
  readonly sqlite?: string;
  readonly postgres?: string | true;
  readonly schema?: string;
  readonly mysql?: string | true;
  readonly redis?: string | true;
  readonly prefix?: string;
}

/** A store that is open, and how to be done with it. */
interface OpenStore {
  readonly inbox: StoreInbox;
  readonly registrations: StoreRegistrations;
  readonly close: () => Promise<void>;
}

interface Made {
  readonly store: Store;
  readonly end: () => unknown;
}

/** A package of the user's project, found from the working directory; else from here; undefined where it is in neither. */
async function findPackage(name: string, context: CliContext): Promise<Record<string, unknown> | undefined> {
  const fromProject = createRequire(join(context.cwd, 'package.json'));
  for (const find of [() => pathToFileURL(fromProject.resolve(name)).href, () => name]) {
    try {
      return (await import(find())) as Record<string, unknown>;
    } catch (error) {
      if (!/MODULE_NOT_FOUND/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    }
  }
  return undefined;
}

async function userPackage(
  name: 'pg' | 'mysql2' | 'ioredis',
  context: CliContext,
): Promise<Record<string, unknown>> {
  const found = await findPackage(name, context);
  if (found) return found;
  throw new UsageError(
    `the package ${name} is not installed here. Run npm install ${name}, in the project that has the receiver.`,
  );
}

/** CommonJS packages have their names on `default` too, or only there. */
function named(module: Record<string, unknown>, name: string): unknown {
  const fallback = module['default'] as Record<string, unknown> | undefined;
  return module[name] ?? fallback?.[name];
}

/** How the URL of each server begins; the first is what messages give as the example. */
const SCHEMES = {
  postgres: ['postgres:', 'postgresql:'],
  mysql: ['mysql:'],
  redis: ['redis:', 'rediss:'],
} as const;

type Server = keyof typeof SCHEMES;

/** Drivers take the path of a socket too. */
const SOCKET = /^\/[^/@]/;

/** The URL may have a password in it: no message repeats any part of it. @throws UsageError */
function urlOf(server: Server, given: string | true, variable: string, context: CliContext): string {
  const url = given === true ? (context.env[variable] ?? '') : given;
  if (url === '') {
    throw new UsageError(
      `--${server}: no URL. Expected one after the option, or in the environment variable ${variable}.`,
    );
  }
  const schemes: readonly string[] = SCHEMES[server];
  if (SOCKET.test(url) || (URL.canParse(url) && schemes.includes(new URL(url).protocol))) return url;
  throw unreadable(server);
}

const unreadable = (server: Server, cause?: unknown): UsageError =>
  new UsageError(
    `--${server}: the URL cannot be read. Expected one like ${SCHEMES[server][0]}//user:password@host:port, with a port of at most 65535 and special characters of the password percent-encoded. It is not shown here because of its password.`,
    { cause },
  );

/** What a driver throws where it reads the URL may repeat it. @throws UsageError */
function readBy<T>(server: Server, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw unreadable(server, error);
  }
}

async function sqlite(given: string, context: CliContext): Promise<Made> {
  const file = resolve(context.cwd, given);
  // A store would make one.
  if (!existsSync(file)) {
    throw new UsageError(
      `${given}: there is no such file. Expected the database that the receiver's sqliteStore has.`,
    );
  }
  // Loaded for this verb alone: some Nodes warn that it is experimental.
  const [{ DatabaseSync }, { sqliteStore }] = await Promise.all([
    import('node:sqlite'),
    import('../../stores/sqlite.ts'),
  ]);
  requireTables(given, () => new DatabaseSync(file, { readOnly: true }));
  return { store: sqliteStore(file), end: () => undefined };
}

/** The pool ends only when its connections do: a server that says nothing must not keep the command. Ms. */
const POOL = { max: 2, connectionTimeoutMillis: 5000, query_timeout: 5000 };

async function postgres(
  flags: StoreFlags & { readonly postgres: string | true },
  context: CliContext,
): Promise<Made> {
  const connectionString = urlOf('postgres', flags.postgres, 'DATABASE_URL', context);
  type Pool = new (options: typeof POOL & { connectionString: string }) => PgPool & { end(): Promise<void> };
  const Pool = named(await userPackage('pg', context), 'Pool') as Pool;
  const pool = readBy('postgres', () => new Pool({ ...POOL, connectionString }));
  const store = postgresStore({ pool, ...(flags.schema !== undefined && { schema: flags.schema }) });
  return { store, end: () => pool.end() };
}

async function mysql(given: string | true, context: CliContext): Promise<Made> {
  const uri = urlOf('mysql', given, 'DATABASE_URL', context);
  await userPackage('mysql2', context);
  const module = await findPackage('mysql2/promise', context);
  type CreatePool = (options: {
    uri: string;
    connectionLimit: number;
    connectTimeout: number;
  }) => MysqlPool & {
    end(): Promise<void>;
  };
  const createPool = named(module ?? {}, 'createPool') as CreatePool;
  const pool = readBy('mysql', () => createPool({ uri, connectionLimit: 2, connectTimeout: 5000 }));
  return { store: mysqlStore({ pool }), end: () => pool.end() };
}

async function redis(
  flags: StoreFlags & { readonly redis: string | true },
  context: CliContext,
): Promise<Made> {
  const url = urlOf('redis', flags.redis, 'REDIS_URL', context);
  type Client = RedisClient & { disconnect(): void; on(event: 'error', listener: () => void): unknown };
  type Constructor = new (url: string, options: object) => Client;
  const Redis = named(await userPackage('ioredis', context), 'Redis') as Constructor;
  const client = readBy('redis', () => new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1 }));
  // What goes wrong is told by the store's own rejection.
  client.on('error', () => undefined);
  const store = redisStore({ client, ...(flags.prefix !== undefined && { prefix: flags.prefix }) });
  return { store, end: () => client.disconnect() };
}

async function make(flags: StoreFlags, context: CliContext): Promise<Made> {
  const { sqlite: file, postgres: database, mysql: other, redis: server } = flags;
  if ([file, database, other, server].filter((one) => one !== undefined).length !== 1) {
    throw new UsageError(
      'no store, or several. Expected one of --sqlite FILE, --postgres [URL], --mysql [URL], --redis [URL].',
    );
  }
  if (file !== undefined) return sqlite(file, context);
  if (database !== undefined) return postgres({ ...flags, postgres: database }, context);
  if (other !== undefined) return mysql(other, context);
  return redis({ ...flags, redis: server ?? true }, context);
}

/** Which store a verb looks into. */
export function addStoreFlags(verb: Command): Command {
  return verb
    .option('--sqlite <file>', 'database file of sqliteStore')
    .option('--postgres [url]', 'database of postgresStore; DATABASE_URL if no URL is given')
    .option('--schema <name>', 'its schema (default: proto_webhooks)')
    .option('--mysql [url]', 'database of mysqlStore; DATABASE_URL if no URL is given')
    .option('--redis [url]', 'server of redisStore; REDIS_URL if no URL is given')
    .option('--prefix <text>', 'its prefix (default: webhook:)');
}

/** Opens the store as its receiver would. @throws UsageError, ConfigError, Fault: each with what was expected. */
export async function openStore(flags: StoreFlags, context: CliContext): Promise<OpenStore> {
  const { store, end } = await make(flags, context);
  const close = async (): Promise<void> => {
    await store.close();
    await end();
  };
  try {
    await store.open();
    const { inbox, registrations } = store;
    if (!inbox || !registrations) {
      throw new UsageError(`the ${store.name} store has no inbox, or keeps no registrations.`);
    }
    return { inbox, registrations, close };
  } catch (error) {
    await close();
    throw error;
  }
}
