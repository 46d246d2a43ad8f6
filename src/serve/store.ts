// Makes the store of a configuration, with the client package that the user has installed. Instances and `--check` call
// it.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../index.ts';
import type { RedisClient } from '../stores/redis.ts';
import type { Store } from '../stores/store.ts';
import { type Clients, createClient } from './clients.ts';
import type { StoreConfig } from './config/store-and-sink.ts';

/** A store that is not opened yet, with the function that ends its database client. */
export interface MadeStore {
  readonly store: Store;
  readonly end: () => Promise<void>;
  /** The database client, if it is a Redis store. */
  readonly redis?: RedisClient;
  /** Makes the store's tables, or raises their version. Absent: the store does so itself. */
  readonly migrate?: () => Promise<{ readonly from: number; readonly to: number }>;
  /** Deletes expired rows of sellers that no longer send. Absent: the store does so itself. */
  readonly sweep?: () => Promise<unknown>;
}

/** The longest time that a delivery waits for a connection. Ms. */
const CONNECT_MS = 3_000;

type Server = Exclude<StoreConfig, { readonly kind: 'sqlite' }>;

/** Makes the client of a database server. @throws ConfigError with the command that installs a missing package */
async function clientOf<K extends keyof Clients>(
  kind: K,
  config: Server,
  folders: readonly string[],
): Promise<Clients[K]> {
  const connections = 'connections' in config ? config.connections : 1;
  const made = await createClient(kind, { folders, url: config.url, connections, connectMs: CONNECT_MS });
  if ('missing' in made) {
    throw new ConfigError(
      `store.${kind}: the package ${made.missing} is not installed. Run npm install ${made.missing}, in the folder of the configuration.`,
    );
  }
  if ('unreadable' in made) {
    throw new ConfigError(
      `store.${kind}.url: the driver cannot read the URL, which is not shown because of its password. Percent-encode the password's special characters.`,
    );
  }
  return made;
}

const nothing = async (): Promise<void> => undefined;

/**
 * Makes the folder of the default store.
 * @throws ConfigError on a read-only file system, or if another file has its name
 */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new ConfigError(
      `store: the folder ${folder} cannot be made (${code}). Make it, and let this user write there; or write another one: store: { sqlite: path }.`,
      { cause: error },
    );
  }
}

async function sqlite({ path, isDefault }: Extract<StoreConfig, { kind: 'sqlite' }>): Promise<MadeStore> {
  if (isDefault) makeFolder(dirname(path));
  const { sqliteStore } = await import('../stores/sqlite.ts');
  return { store: sqliteStore(path), end: nothing };
}

/**
 * Makes the store of the configuration. The store connects when it is opened.
 * @throws ConfigError (rejects) if something that it needs is missing.
 */
export async function makeStore(
  config: Extract<StoreConfig, { readonly kind: 'postgres' | 'mysql' }>,
  folders: readonly string[],
): Promise<MadeStore & Required<Pick<MadeStore, 'migrate'>>>;
export async function makeStore(config: StoreConfig, folders: readonly string[]): Promise<MadeStore>;
export async function makeStore(config: StoreConfig, folders: readonly string[]): Promise<MadeStore> {
  if (config.kind === 'sqlite') return sqlite(config);
  if (config.kind === 'postgres') {
    const { client: pool, end } = await clientOf('postgres', config, folders);
    const { migrate, postgresStore } = await import('../stores/postgres.ts');
    const named = config.schema !== undefined && { schema: config.schema };
    const store = postgresStore({ pool, ...named });
    return { store, end, migrate: () => migrate(pool, { ...named }), sweep: () => store.sweep() };
  }
  if (config.kind === 'mysql') {
    const { client: pool, end } = await clientOf('mysql', config, folders);
    const { migrate, mysqlStore } = await import('../stores/mysql.ts');
    const store = mysqlStore({ pool });
    return { store, end, migrate: () => migrate(pool), sweep: () => store.sweep() };
  }
  const { client, end } = await clientOf('redis', config, folders);
  const { redisStore } = await import('../stores/redis.ts');
  const { prefix, waitReplicas } = config;
  const store = redisStore({
    client,
    ...(prefix !== undefined && { prefix }),
    ...(waitReplicas !== undefined && { waitReplicas }),
  });
  return { store, end, redis: client };
}
