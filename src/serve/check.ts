import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ConfigSource, ServeConfig } from './config/read-config.ts';
import type { StoreConfig } from './config/store-and-sink.ts';
import { makeSink } from './instance.ts';
import { makeStore } from './store.ts';
import { messageOf } from './within.ts';

/** One part of `serve --check`. */
export interface CheckedPart {
  readonly part: 'configuration' | 'store' | 'sink';
  readonly ok: boolean;
  /** What was found, or what is wrong with the fix. */
  readonly text: string;
}

/** How long the sink may take, ms. */
const CHECK_MS = 5_000;

/** A file is opened by nobody: opening makes it, and raises its version. */
async function sqliteText(path: string): Promise<string> {
  if (!existsSync(path)) {
    accessSync(dirname(path), constants.W_OK);
    return `${path} is not there yet: the first start makes it`;
  }
  accessSync(path, constants.R_OK | constants.W_OK);
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    db.exec('PRAGMA busy_timeout = 2000');
    const tables = db.prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'webhook_record'",
    );
    if (tables.all().length > 0) return `${path} is there`;
    throw new Error(`${path} is a database without the tables of serve. Name a file of its own.`);
  } finally {
    db.close();
  }
}

async function serverText(config: StoreConfig, folders: readonly string[]): Promise<string> {
  const { store, end } = await makeStore(config, folders);
  try {
    await store.open();
    return `the ${config.kind} store is ready; answered events survive: ${await store.durability()}`;
  } finally {
    await store.close();
    await end();
  }
}

async function checked(part: CheckedPart['part'], look: () => Promise<string>): Promise<CheckedPart> {
  try {
    return { part, ok: true, text: await look() };
  } catch (error) {
    return { part, ok: false, text: messageOf(error) };
  }
}

async function sinkText(config: ServeConfig): Promise<string> {
  const sink = await makeSink(config.sink);
  try {
    await sink.check(AbortSignal.timeout(CHECK_MS));
    return `${sink.name} is there`;
  } finally {
    await sink.close();
  }
}

/** Tries store and sink without a change (serve.md §1.7). */
export async function checkParts(
  { file, cwd }: ConfigSource,
  config: ServeConfig,
): Promise<readonly CheckedPart[]> {
  const { store, folder } = config;
  return [
    { part: 'configuration', ok: true, text: `${file} has no mistake` },
    await checked('store', () =>
      store.kind === 'sqlite' ? sqliteText(store.path) : serverText(store, [folder, cwd]),
    ),
    await checked('sink', () => sinkText(config)),
  ];
}

/** Makes or raises the store's tables. @returns what was done */
export async function migrateStore({ cwd }: ConfigSource, { store, folder }: ServeConfig): Promise<string> {
  if (store.kind === 'sqlite') return 'nothing to do: the SQLite store makes its tables by itself';
  const { migrate, end } = await makeStore(store, [folder, cwd]);
  try {
    if (!migrate) return 'nothing to do: the Redis store has no tables';
    return `the tables are those of version ${String(await migrate())}`;
  } finally {
    await end();
  }
}
