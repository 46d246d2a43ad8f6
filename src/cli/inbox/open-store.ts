// Opens the store of a receiver by the flags of a command. It refuses a file or URL that is not a receiver's store. The
// commands `inbox`, `tasks`, `owed` and `state` use it.
import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type Clients, createClient } from '../../serve/clients.ts';
import type { Store, StoreInbox, StoreRegistrations } from '../../stores/store.ts';
import { mysqlStore } from '../../stores/mysql.ts';
import { postgresStore } from '../../stores/postgres.ts';
import { redisStore } from '../../stores/redis.ts';
import { type CliContext, UsageError } from '../shell.ts';
import { messageOf } from '../../shared/errors.ts';

/**
 * Selects the names of a store's tables; `webhook_record` is a table of version 1. A store makes at least two tables in
 * one transaction (`stores/sqlite/schema`), so a single one may belong to another application.
 */
const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table'
  AND name IN ('webhook_schema', 'webhook_row', 'webhook_record')`;

/** The time to wait while another connection recovers or checkpoints the file. Ms. */
const BUSY_MS = 2000;

/**
 * Counts the tables of a store in a file.
 * @param open opens a read-only connection, because the file may be another application's database.
 */
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
 * Refuses a file in which no receiver has stored anything. Opening a store makes tables and sets WAL mode, which would
 * be wrong in another application's database.
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

/**
 * The flags that choose the store. Exactly one store must be given. The value `true` means that its URL is in the
 * environment.
 */
export interface StoreFlags {
  readonly sqlite?: string;
  readonly postgres?: string | true;
  readonly schema?: string;
  readonly mysql?: string | true;
  readonly redis?: string | true;
  readonly prefix?: string;
}

/** An open store, and the function that closes it. */
interface OpenStore {
  readonly inbox: StoreInbox;
  readonly registrations: StoreRegistrations;
  readonly close: () => Promise<void>;
}

interface Made {
  readonly store: Store;
  readonly end: () => unknown;
}

/** The protocols that each server's URL may have. Messages show the first as an example. */
const SCHEMES = {
  postgres: ['postgres:', 'postgresql:'],
  mysql: ['mysql:'],
  redis: ['redis:', 'rediss:'],
} as const;

type Server = keyof Clients;

/** Matches the path of a Unix socket, which drivers accept instead of a URL. */
const SOCKET = /^\/[^/@]/;

/**
 * Returns the URL of a server. Error messages repeat no part of it, because it may contain a password. @throws
 * UsageError
 */
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

/**
 * The limits of a connection pool, times in ms. The command ends only when all connections have ended, so a silent
 * server must not block it.
 */
const POOL = { connections: 2, connectMs: 5000, queryMs: 5000 };

/** Makes the client of a server. @throws UsageError */
async function clientOf<K extends Server>(server: K, url: string, context: CliContext): Promise<Clients[K]> {
  const made = await createClient(server, { ...POOL, folders: [context.cwd], url });
  // If a driver cannot read the URL, its error may repeat the URL, so that error is not shown.
  if ('unreadable' in made) throw unreadable(server, made.unreadable);
  if (!('missing' in made)) return made;
  throw new UsageError(
    `the package ${made.missing} is not installed here. Run npm install ${made.missing}, in the project that has the receiver.`,
  );
}

async function sqlite(given: string, context: CliContext): Promise<Made> {
  const file = resolve(context.cwd, given);
  // Without this check, opening the store would create the file.
  if (!existsSync(file)) {
    throw new UsageError(
      `${given}: there is no such file. Expected the database that the receiver's sqliteStore has.`,
    );
  }
  // Both modules are loaded only when needed, because some versions of Node warn that node:sqlite is experimental.
  const [{ DatabaseSync }, { sqliteStore }] = await Promise.all([
    import('node:sqlite'),
    import('../../stores/sqlite.ts'),
  ]);
  requireTables(given, () => new DatabaseSync(file, { readOnly: true }));
  return { store: sqliteStore(file), end: () => undefined };
}

async function postgres(
  flags: StoreFlags & { readonly postgres: string | true },
  context: CliContext,
): Promise<Made> {
  const url = urlOf('postgres', flags.postgres, 'DATABASE_URL', context);
  const { client: pool, end } = await clientOf('postgres', url, context);
  return {
    store: postgresStore({ pool, ...(flags.schema !== undefined && { schema: flags.schema }) }),
    end,
  };
}

async function mysql(given: string | true, context: CliContext): Promise<Made> {
  const url = urlOf('mysql', given, 'DATABASE_URL', context);
  const { client: pool, end } = await clientOf('mysql', url, context);
  return { store: mysqlStore({ pool }), end };
}

async function redis(
  flags: StoreFlags & { readonly redis: string | true },
  context: CliContext,
): Promise<Made> {
  const url = urlOf('redis', flags.redis, 'REDIS_URL', context);
  const { client, end } = await clientOf('redis', url, context);
  return {
    store: redisStore({ client, ...(flags.prefix !== undefined && { prefix: flags.prefix }) }),
    end,
  };
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

/** Adds the flags of `StoreFlags`. */
export function addStoreFlags(verb: Command): Command {
  return verb
    .option('--sqlite <file>', 'database file of sqliteStore')
    .option('--postgres [url]', 'database of postgresStore; DATABASE_URL if no URL is given')
    .option('--schema <name>', 'its schema (default: proto_webhooks)')
    .option('--mysql [url]', 'database of mysqlStore; DATABASE_URL if no URL is given')
    .option('--redis [url]', 'server of redisStore; REDIS_URL if no URL is given')
    .option('--prefix <text>', 'its prefix (default: webhook:)');
}

/**
 * Opens the store in the same way as its receiver. @throws UsageError, ConfigError or Fault, which say what was
 * expected
 */
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
