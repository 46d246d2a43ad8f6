import { ConfigError, Fault } from '../../errors.ts';
import type { Commits, CommitOptions } from './commits.ts';
import { commitsOf } from './commits.ts';
import type { SqliteHandle } from './handle.ts';
import { asFault, isBusy } from './handle.ts';
import { placeOf } from './place.ts';
import type { SqliteRows } from './rows.ts';
import { sqliteRows } from './rows.ts';
import { migrate } from './schema.ts';
import type { Settings } from './settings.ts';
import { settingsOf } from './settings.ts';

/** A connection that is ready: settings made and read, schema of this version, statements prepared. */
export interface OpenDatabase {
  readonly db: SqliteHandle;
  readonly rows: SqliteRows;
  readonly commits: Commits;
  readonly settings: Settings;
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
  await whileBusy(() => inTransaction(db, () => migrate(db)), options);
  const rows = sqliteRows(db);
  const place = placeOf(db);
  const prepare = (): void => {
    place.check();
    settings.restore();
  };
  const commits = commitsOf(db, prepare, { ...options, memory: rows });
  return { db, rows, commits, settings };
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

function inTransaction(db: SqliteHandle, step: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    step();
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}
