// Finds packages of the user's project, and makes database clients with them. `store.ts` and `telemetry.ts` use it, and
// so do the commands that open a store.
import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MysqlPool } from '../stores/mysql.ts';
import type { PgPool } from '../stores/postgres.ts';
import type { RedisClient } from '../stores/redis.ts';

/** The exports of a package, as `import` returns them. */
export type Package = Readonly<Record<string, unknown>>;

/**
 * Finds a package of the user's project in the first of these folders that has it, or else from this package's folder.
 * Undefined if it is not found.
 */
export async function findPackage(name: string, folders: readonly string[]): Promise<Package | undefined> {
  const fromProjects = folders.map(
    (folder) => () => pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href,
  );
  for (const find of [...fromProjects, () => name]) {
    try {
      return (await import(find())) as Package;
    } catch (error) {
      if (!/MODULE_NOT_FOUND/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    }
  }
  return undefined;
}

/** Returns an export by its name. CommonJS packages also have their exports on `default`, or only there. */
export function named(module: Package, name: string): unknown {
  const fallback = module['default'] as Package | undefined;
  return module[name] ?? fallback?.[name];
}

/** Settings of a database client. */
export interface ClientOptions {
  /** The folders in which the client's package is searched first. */
  readonly folders: readonly string[];
  readonly url: string;
  /** The largest number of connections. */
  readonly connections: number;
  /** The time limit for a connection, ms. */
  readonly connectMs: number;
  /** The time limit for a query, ms; absent: the store's own limit. Used only for Postgres. */
  readonly queryMs?: number;
}

/** The database clients, each with the function that ends it. A client connects when it is first used. */
export interface Clients {
  readonly postgres: { readonly client: PgPool; readonly end: () => Promise<void> };
  readonly mysql: { readonly client: MysqlPool; readonly end: () => Promise<void> };
  readonly redis: { readonly client: RedisClient; readonly end: () => Promise<void> };
}

/**
 * The reason why there is no client: its package is not installed, or the driver cannot read the URL. The driver's
 * error may contain the URL.
 */
export type NoClient = { readonly missing: string } | { readonly unreadable: unknown };

const PACKAGES = {
  postgres: ['pg', 'pg'],
  mysql: ['mysql2', 'mysql2/promise'],
  redis: ['ioredis', 'ioredis'],
} as const;

/** Ignores the error of a connection that ends while it is idle, because the store's next call gets the same error. */
const quiet = (): void => undefined;

interface Emitter {
  on(event: 'error', listener: () => void): unknown;
}

const MAKE: { readonly [K in keyof Clients]: (module: Package, options: ClientOptions) => Clients[K] } = {
  postgres(module, { url, connections, connectMs, queryMs }) {
    type Pool = PgPool & Emitter & { end(): Promise<void> };
    const Constructor = named(module, 'Pool') as new (options: object) => Pool;
    const pool = new Constructor({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: connectMs,
      ...(queryMs !== undefined && { query_timeout: queryMs }),
    });
    pool.on('error', quiet);
    return { client: pool, end: () => pool.end() };
  },
  mysql(module, { url, connections, connectMs }) {
    type Pool = MysqlPool & { readonly pool: EventEmitter; end(): Promise<void> };
    const createPool = named(module, 'createPool') as (options: object) => Pool;
    const pool = createPool({ uri: url, connectionLimit: connections, connectTimeout: connectMs });
    const sockets = new Set<Socket>();
    pool.pool.on('connection', ({ stream }: { readonly stream: Socket }) => {
      sockets.add(stream);
      stream.once('close', () => sockets.delete(stream));
    });
    const end = async (): Promise<void> => {
      // A connection that was still being made rejects. Its error would hide the one of the store.
      await pool.end().catch(quiet);
      // The driver leaves it to the server to close connections. A silent server must not keep the process alive.
      for (const socket of sockets) socket.unref();
    };
    return { client: pool, end };
  },
  redis(module, { url }) {
    type Client = RedisClient & Emitter & { disconnect(): void };
    const Constructor = named(module, 'Redis') as new (url: string, options: object) => Client;
    const client = new Constructor(url, { lazyConnect: true, maxRetriesPerRequest: 1 });
    client.on('error', quiet);
    return { client, end: async () => client.disconnect() };
  },
};

/** Makes a database client with the package in the user's project. */
export async function createClient<K extends keyof Clients>(
  kind: K,
  options: ClientOptions,
): Promise<Clients[K] | NoClient> {
  const [missing, entry] = PACKAGES[kind];
  const module = await findPackage(entry, options.folders);
  if (!module) return { missing };
  try {
    return MAKE[kind](module, options);
  } catch (error) {
    return { unreadable: error };
  }
}
