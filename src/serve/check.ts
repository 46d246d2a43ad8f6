// Checks the store and the sink (destination of events) of a configuration without changing anything, and migrates a
// store (serve.md §1.7). `proto-webhooks serve --check` and `--migrate` call it.
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { RedisClient } from '../stores/redis.ts';
import type { ConfigSource, ServeConfig } from './config/read-config.ts';
import type { StoreConfig } from './config/store-and-sink.ts';
import { makeSink } from './instance.ts';
import { type MadeStore, makeStore } from './store.ts';
import { installed, wantedOf } from './telemetry.ts';
import { adviceOf } from './within.ts';

/** The result of `serve --check` for one part of the configuration. */
export interface CheckedPart {
  readonly part: 'configuration' | 'store' | 'sink' | 'telemetry';
  readonly ok: boolean;
  /** The result in words; for a mistake, also its correction. */
  readonly text: string;
}

/** The time limit for the sink's answer. Ms. */
const CHECK_MS = 5_000;

const TABLES =
  "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('webhook_schema', 'webhook_row')";

/**
 * Checks a SQLite file. The store itself is not opened, because that would make the file, or raise its version.
 * @throws Error with the fault
 */
async function sqliteText({ path, isDefault }: Extract<StoreConfig, { kind: 'sqlite' }>): Promise<string> {
  if (!existsSync(path)) {
    const folder = dirname(path);
    accessSync(isDefault && !existsSync(folder) ? dirname(folder) : folder, constants.W_OK);
    return `${path} is not there yet: the first start makes it`;
  }
  accessSync(path, constants.R_OK | constants.W_OK);
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    db.exec('PRAGMA busy_timeout = 2000');
    const isOurs = db.prepare(TABLES).all().length === 2;
    return `${path} is there${isOurs ? '' : ', without tables of the store: the first start makes them'}`;
  } finally {
    db.close();
  }
}

type Durability = NonNullable<ServeConfig['durability']>;

/** The levels of durability, the weakest first. */
const LEVELS = ['process', 'disk', 'failover'] as const;

/**
 * Opens a store, and returns a sentence about its durability.
 * @throws Error if the durability is too low for `serve` to start
 */
async function opened({ store }: MadeStore, { require = 'disk', declared }: Durability): Promise<string> {
  await store.open();
  const read = await store.durability();
  const level = read === 'unknown' ? declared : read;
  if (level !== undefined && LEVELS.indexOf(level) >= LEVELS.indexOf(require)) {
    return `the ${store.name} store is ready, with durability ${level}`;
  }
  const found =
    level ?? 'unknown, for its settings cannot be read (declare it: durability: { declared: disk })';
  throw new Error(
    `the durability of the ${store.name} store is ${found}, and ${require} is required. ${store.durabilityAdvice ?? 'Use a stronger setting.'}`,
  );
}

/** Checks a Redis store. The store is opened only if it has keys already, because opening makes some. */
async function redisText(
  made: MadeStore & { readonly redis: RedisClient },
  durability: Durability,
  prefix = 'webhook:',
): Promise<string> {
  const found = await (made.redis as unknown as { call(...words: string[]): Promise<unknown> }).call(
    'EXISTS',
    `${prefix}{registry}:v`,
  );
  return found === 1
    ? opened(made, durability)
    : 'the server answers, and has no key of the store yet: the first start makes them';
}

async function storeText({ store, durability = {}, folder }: ServeConfig, cwd: string): Promise<string> {
  if (store.kind === 'sqlite') return sqliteText(store);
  const made = await makeStore(store, [folder, cwd]);
  const { redis } = made;
  try {
    return await (store.kind === 'redis' && redis
      ? redisText({ ...made, redis }, durability, store.prefix)
      : opened(made, durability));
  } finally {
    await made.store.close();
    await made.end();
  }
}

async function sinkText(config: ServeConfig): Promise<string> {
  const sink = await makeSink(config.sink);
  try {
    await sink.check(AbortSignal.timeout(CHECK_MS));
    return config.sink.kind === 'http'
      ? `${sink.name} is reached; whether it takes events, the first one shows`
      : `${sink.name} is there`;
  } finally {
    await sink.close();
  }
}

/** Checks store and sink, and looks for the packages of telemetry, without changing anything (serve.md §1.7). */
export async function checkParts(source: ConfigSource, config: ServeConfig): Promise<readonly CheckedPart[]> {
  const checked = async (part: CheckedPart['part'], look: Promise<string>): Promise<CheckedPart> =>
    look.then(
      (text) => ({ part, ok: true, text }),
      (error: unknown) => ({ part, ok: false, text: adviceOf(error, file) }),
    );
  const { file, cwd, env } = source;
  const wanted = wantedOf({ env, metrics: config.health.metrics });
  return Promise.all([
    checked('configuration', Promise.resolve(`${file} has no mistake`)),
    checked('store', storeText(config, cwd)),
    checked('sink', sinkText(config)),
    ...(wanted ? [checked('telemetry', installed(wanted, [config.folder, cwd]))] : []),
  ]);
}

/** Makes the store's tables, or raises their version. @returns a sentence for people */
export async function migrateStore({ cwd }: ConfigSource, { store, folder }: ServeConfig): Promise<string> {
  // These stores make their tables or keys by themselves, so no client is needed here.
  if (store.kind === 'sqlite' || store.kind === 'redis') {
    return `nothing to do: the ${store.kind} store makes what it needs by itself`;
  }
  const { migrate, end } = await makeStore(store, [folder, cwd]);
  try {
    const { from, to } = await migrate();
    const is = from === to ? 'are' : from === 0 ? 'were made' : 'were raised';
    return `the tables of the ${store.kind} store ${is}: version ${to}`;
  } finally {
    await end();
  }
}
