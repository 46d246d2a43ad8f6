// Checks that a connection's file was not moved or replaced, and reads the store's identity (admission.md §7.5, §9.2).
// Called by open.ts, before each transaction and at each open.
import { statSync } from 'node:fs';
import { Fault } from '../../shared/errors.ts';
import type { StoreIdentity } from '../store.ts';
import { type SqliteHandle, type SqliteRow, textOf } from './handle.ts';

/** The database file of a connection, with the files beside it. */
export interface DatabaseFile {
  /**
   * Checks the files before each transaction. If a file was deleted, moved or replaced, the connection still writes to
   * the old file. The old file is lost when the connection closes, or its process ends. SQLite itself checks only in
   * rollback modes (SQLITE_READONLY_DBMOVED).
   *
   * @throws Fault `store_unavailable` until the same files are back.
   */
  check(): void;
}

/**
 * The endings of the files beside the database in WAL mode: the last commits, and the locks of all processes. The last
 * connection that closes deletes these files.
 */
const BESIDE = ['-wal', '-shm'];

/**
 * Remembers the files of a connection that has had a transaction. `:memory:` and temporary databases have no files. A
 * file that does not exist now is not checked later, e.g. without WAL, or in a locking mode without `-shm`.
 */
export function placeOf(db: SqliteHandle): DatabaseFile {
  const file = fileOf(db);
  const places = file === '' ? [] : ['', ...BESIDE].map((end) => file + end);
  const inodes = new Map(places.map((path) => [path, inodeOf(path)]));
  return {
    check: () => {
      for (const [path, inode] of inodes) {
        if (inode === undefined || inodeOf(path) === inode) continue;
        if (path === file || isWal(db)) throw gone(path);
        // Other code has ended WAL mode, so this file may be missing and is no longer checked.
        inodes.delete(path);
      }
    },
  };
}

function isWal(db: SqliteHandle): boolean {
  const row = db.prepare('PRAGMA journal_mode').get() as SqliteRow | undefined;
  return row?.['journal_mode'] === 'wal';
}

const gone = (path: string): Fault =>
  new Fault(
    'store_unavailable',
    `SQLite: ${path} was deleted, moved or replaced while it was open. Put it back, or restart to use another one.`,
  );

/** Returns the path of the main database; '' for a database in memory or a temporary one. */
export function fileOf(db: SqliteHandle): string {
  const databases = db.prepare('PRAGMA database_list').all() as SqliteRow[];
  const file = databases.find((row) => row['name'] === 'main')?.['file'];
  return typeof file === 'string' ? file : '';
}

function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * Reads the store's identity, which is created in the same transaction as its tables.
 *
 * @param isMade true if the running transaction created the tables.
 * @returns a function that returns the identity. Only its first call may say that the store is new.
 */
export function identify(db: SqliteHandle, isMade: boolean): () => StoreIdentity {
  if (isMade) {
    db.prepare('INSERT INTO webhook_identity (id) VALUES (?)').run(globalThis.crypto.randomUUID());
  }
  const id = textOf(db.prepare('SELECT id FROM webhook_identity').get() as SqliteRow, 'id');
  let isNew = isMade && fileOf(db) !== '';
  return () => {
    const identity = { id, isNew };
    isNew = false;
    return identity;
  };
}
