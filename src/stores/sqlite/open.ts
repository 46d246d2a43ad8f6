// Opens a connection: its settings, the schema, the prepared statements (admission.md §7.2, §7.3, §9.2).
// Called by `src/stores/sqlite.ts`.
import * as fs from 'node:fs';
import { ConfigError, Fault, messageOf } from '../../shared/errors.ts';
import type { Durability, StoreIdentity } from '../store.ts';
import { whileRunning } from '../schema-version.ts';
import { type CommitOptions, type Commits, commitsOf } from './commits.ts';
import { type SqliteHandle, asFault, isBusy, type SqliteRow, textOf } from './handle.ts';
import { identify, placeOf, fileOf } from './place.ts';
import { type SqliteRows, sqliteRows } from './sqlite-rows.ts';
import { migrate, versionCheck } from './sqlite-schema.ts';

/**
 * The settings of a connection on which durability depends. `synchronous` is not stored in the file, and drivers open a
 * WAL database with the value NORMAL. Under NORMAL, an answered commit can be lost in a power failure. So `synchronous`
 * is set at every open, read back, and checked before every transaction.
 */
export interface Settings {
  /** Applies the settings. Fails with the error BUSY if another connection has a lock. */
  apply(): void;
  /**
   * Restores `synchronous` before each transaction, because another PRAGMA on this handle may have lowered it.
   *
   * @throws Fault `not_durable` if it cannot be restored.
   */
  restore(): void;
  /** Returns the durability under the connection's present settings. */
  durability(): Durability;
}

/**
 * The weakest `synchronous` under which a commit survives a power failure
 * (sqlite.org/pragma.html#pragma_synchronous), and the next stronger one.
 */
const FULL = 2;
const EXTRA = 3;

/**
 * The value of `synchronous` that each `journal_mode` needs. DELETE needs EXTRA: under FULL the deletion of the journal
 * is not synced, and a journal that reappears rolls back the last commit. MEMORY and OFF survive no power failure.
 */
const NEEDED: Readonly<Record<string, number>> = { wal: FULL, truncate: FULL, persist: FULL, delete: EXTRA };

/**
 * The number of pages in the WAL at which a commit copies them into the database: some 16 MiB. An accept alone in its
 * transaction writes 13 pages, most of which the previous accept wrote too. Copying writes each page once and syncs
 * twice. With SQLite's default of 1,000 pages that would happen every 80 accepts.
 */
const CHECKPOINT_PAGES = 4000;

export function settingsOf(db: SqliteHandle): Settings {
  let needed = FULL;
  /**
   * The `synchronous` that `apply` reached. It is below `needed` if the driver refuses; then `durability` returns less.
   */
  let reached = FULL;
  const raise = (): void => {
    db.exec(`PRAGMA synchronous = ${needed === EXTRA ? 'EXTRA' : 'FULL'}`);
  };
  return {
    apply: () => {
      // The driver is synchronous, so its own wait for a lock would stop the event loop. The store retries instead.
      db.exec('PRAGMA busy_timeout = 0');
      needed = NEEDED[journalMode(db, 'PRAGMA journal_mode = WAL')] ?? FULL;
      raise();
      reached = Math.min(needed, synchronous(db));
      // These settings have an effect only on macOS: without them, fsync there does not reach the disk itself.
      db.exec('PRAGMA fullfsync = ON');
      db.exec('PRAGMA checkpoint_fullfsync = ON');
      db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    },
    restore: () => {
      if (synchronous(db) >= reached) return;
      raise();
      if (synchronous(db) >= reached) return;
      throw new Fault('not_durable', 'SQLite: PRAGMA synchronous was lowered on this handle and stays so.');
    },
    durability: () => {
      const least = NEEDED[journalMode(db, 'PRAGMA journal_mode')] ?? Infinity;
      const file = fileOf(db);
      return file !== '' && !isInMemory(file) && synchronous(db) >= least ? 'disk' : 'process';
    },
  };
}

/**
 * The numbers by which `statfs` reports Linux's file systems in memory, tmpfs and ramfs. Their files are lost in a
 * power failure, even if they were synced.
 */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01_02_19_94, 0x85_84_58_f6]);

/** True for a file in a file system in memory. False if the runtime cannot tell. */
function isInMemory(file: string): boolean {
  try {
    return IN_MEMORY.has(fs.statfsSync(file).type >>> 0);
  } catch {
    return false;
  }
}

/**
 * Reads `synchronous`. The statement is prepared each time, because SQLite compiles the value into it: a prepared
 * statement that is used again would return an old value.
 */
function synchronous(db: SqliteHandle): number {
  const row = db.prepare('PRAGMA synchronous').get() as SqliteRow | undefined;
  return Number(row?.['synchronous']);
}

function journalMode(db: SqliteHandle, pragma: string): string {
  return textOf(db.prepare(pragma).get() as SqliteRow, 'journal_mode').toLowerCase();
}

/** A connection that is ready: settings applied and read back, schema up to date, statements prepared. */
export interface OpenDatabase {
  readonly db: SqliteHandle;
  readonly rows: SqliteRows;
  readonly commits: Commits;
  /**
   * Returns the durability under the connection's present settings.
   *
   * @throws ConfigError if a newer package has opened the file meanwhile.
   */
  readonly durability: () => Durability;
  readonly identity: () => StoreIdentity;
}

export type BusyOptions = Omit<CommitOptions, 'memory'>;

/**
 * Makes a connection ready for use.
 *
 * @throws ConfigError if the database cannot be used; Fault `store_unavailable` if another connection keeps its lock.
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
    const reason = messageOf(error);
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

/** The mean pause before a retry while another process has a lock on the file that is being opened, ms. */
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
