import { ConfigError, Fault } from '../../errors.ts';
import type { Durability, StoreIdentity } from '../contract.ts';
import { whileRunning } from '../schema-version.ts';
import { type CommitOptions, type Commits, commitsOf } from './commits.ts';
import type { SqliteHandle } from './handle.ts';
import { asFault, isBusy } from './handle.ts';
import { identify, placeOf } from './place.ts';
import { type SqliteRows, sqliteRows } from './rows.ts';
import { migrate, versionCheck } from './schema.ts';
import { settingsOf } from './settings.ts';

/** A connection that is ready: settings made and read, schema of this version, statements prepared. */
export interface OpenDatabase {
  readonly db: SqliteHandle;
  readonly rows: SqliteRows;
  readonly commits: Commits;
  /** @throws ConfigError where a newer package has opened the file meanwhile. */
  readonly durability: () => Durability;
  readonly identity: () => StoreIdentity;
}

export type BusyOptions = Omit<CommitOptions, 'memory'>;

/**
 * Makes a connection ready.
 * @throws ConfigError where it cannot be used; Fault `store_unavailable` where another connection stays in the way.
 */
export async function openDatabase(
  connect: () => SqliteHandle,
  release: (db: SqliteHandle) => void,
  options: BusyOptions,
): Promise<OpenDatabase> {
  let db: SqliteHandle | undefined;
  try {
    db = connect();
    return await prepareDatabase(db, options);
  } catch (error) {
    if (db) release(db);
    if (error instanceof ConfigError || error instanceof Fault) throw error;
    if (isBusy(error)) throw asFault(error);
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(
      `sqliteStore: ${reason}. Pass the path of a SQLite database (3.37 or newer) in a folder that exists and is writable, or an open handle of one.`,
      { cause: error },
    );
  }
}

async function prepareDatabase(db: SqliteHandle, options: BusyOptions): Promise<OpenDatabase> {
  const settings = settingsOf(db);
  await whileBusy(() => settings.apply(), options);
  const made = (): (() => StoreIdentity) => identify(db, migrate(db) === 0);
  const identity = await whileBusy(() => inTransaction(db, made), options);
  const rows = sqliteRows(db);
  const place = placeOf(db);
  const checkVersion = versionCheck(db);
  const begin = (): void => {
    place.check();
    settings.restore();
    db.exec('BEGIN IMMEDIATE');
    try {
      checkVersion();
    } catch (error) {
      db.exec('ROLLBACK');
      throw whileRunning(error);
    }
  };
  const commits = commitsOf(db, begin, { ...options, memory: rows });
  const durability = (): Durability => {
    try {
      checkVersion();
    } catch (error) {
      throw asFault(error);
    }
    return settings.durability();
  };
  return { db, rows, commits, durability, identity };
}

async function whileBusy<T>(step: () => T, options: BusyOptions): Promise<T> {
  for (let waitedMs = 0; ;) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || waitedMs >= options.busyMs) throw error;
      const ms = OPEN_WAIT_MS * (0.5 + options.random());
      await options.delay(ms);
      waitedMs += ms;
    }
  }
}

/** Mean wait for another process that opens the same file, ms. */
const OPEN_WAIT_MS = 20;

function inTransaction<T>(db: SqliteHandle, step: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = step();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}
