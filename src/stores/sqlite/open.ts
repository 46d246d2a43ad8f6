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
 * The durability of a connection. `synchronous` is not stored in the file, and drivers open a WAL database with NORMAL.
 * Under that an answered commit can be gone after a power cut. So it is set at every open, read back, and checked
 * before every transaction.
 */
export interface Settings {
  /** Sets the settings that can be set. It fails with BUSY if another connection is in the way. */
  apply(): void;
  /**
   * Restores `synchronous` before each transaction: somebody else's PRAGMA on this handle may have lowered it.
   *
   * @throws Fault `not_durable` if it cannot be set back.
   */
  restore(): void;
  /** Returns the durability by the connection's present settings. */
  durability(): Durability;
}

/**
 * The weakest `synchronous` under which a commit survives a power cut (sqlite.org/pragma.html#pragma_synchronous), and
 * the one above it.
 */
const FULL = 2;
const EXTRA = 3;

/**
 * The needed `synchronous` by `journal_mode`. DELETE needs EXTRA: under FULL the directory entry of the deleted journal
 * is not synced, and its return rolls the last commit back. MEMORY and OFF survive nothing.
 */
const NEEDED: Readonly<Record<string, number>> = { wal: FULL, truncate: FULL, persist: FULL, delete: EXTRA };

/**
 * The pages in the WAL before a commit moves them into the database: some 16 MiB. A single accept writes 13, most of
 * which the accept before wrote too. A move writes each page once and syncs twice. SQLite's own 1,000 pages would mean
 * a move every 80 accepts.
 */
const CHECKPOINT_PAGES = 4000;

export function settingsOf(db: SqliteHandle): Settings {
  let needed = FULL;
  /** The level that the open reached. It is less than needed if the driver refuses, and `durability` says so. */
  let reached = FULL;
  const raise = (): void => {
    db.exec(`PRAGMA synchronous = ${needed === EXTRA ? 'EXTRA' : 'FULL'}`);
  };
  return {
    apply: () => {
      // The driver is synchronous, so a timeout of its own would stop the event loop. The store retries itself.
      db.exec('PRAGMA busy_timeout = 0');
      needed = NEEDED[journalMode(db, 'PRAGMA journal_mode = WAL')] ?? FULL;
      raise();
      reached = Math.min(needed, synchronous(db));
      // Only macOS has these settings: without them fsync does not reach the platter there.
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

/** Linux's tmpfs and ramfs, as statfs numbers them. Their files are gone with the machine's power, synced or not. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01_02_19_94, 0x85_84_58_f6]);

/** True for a file in memory. A runtime that cannot tell counts as having a disk. */
function isInMemory(file: string): boolean {
  try {
    return IN_MEMORY.has(fs.statfsSync(file).type >>> 0);
  } catch {
    return false;
  }
}

/**
 * Reads `synchronous`. The statement is prepared each time: SQLite compiles the setting's value into it, so a kept one
 * gives an old value.
 */
function synchronous(db: SqliteHandle): number {
  const row = db.prepare('PRAGMA synchronous').get() as SqliteRow | undefined;
  return Number(row?.['synchronous']);
}

function journalMode(db: SqliteHandle, pragma: string): string {
  return textOf(db.prepare(pragma).get() as SqliteRow, 'journal_mode').toLowerCase();
}

/** A connection that is ready: settings made and read, schema of this version, statements prepared. */
export interface OpenDatabase {
  readonly db: SqliteHandle;
  readonly rows: SqliteRows;
  readonly commits: Commits;
  /** Returns the durability. @throws ConfigError if a newer package has opened the file meanwhile. */
  readonly durability: () => Durability;
  readonly identity: () => StoreIdentity;
}

export type BusyOptions = Omit<CommitOptions, 'memory'>;

/**
 * Makes a connection ready.
 *
 * @throws ConfigError if it cannot be used; Fault `store_unavailable` if another connection stays in the way.
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

/** The mean wait for another process that opens the same file, ms. */
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
