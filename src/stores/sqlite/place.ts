import { statSync } from 'node:fs';
import { Fault } from '../../shared/errors.ts';
import type { StoreIdentity } from '../store.ts';
import { type SqliteHandle, type SqliteRow, textOf } from './handle.ts';

/** Where a connection's database is. */
export interface DatabaseFile {
  /**
   * Before each transaction: a file that was deleted, moved or replaced under its connection is still written to, and
   * gone when the connection closes, or its process dies. SQLite itself looks in rollback modes only (SQLITE_READONLY_DBMOVED).
   * @throws Fault `store_unavailable` until the same files are back.
   */
  check(): void;
}

/**
 * Beside the file in WAL mode: what was committed last, and the locks of all processes. No other process takes them
 * away as long as a connection has them open; who closes last does.
 */
const BESIDE = ['-wal', '-shm'];

/**
 * Of a connection that has had a transaction, as it is now. `:memory:` and temporary databases are nowhere. What is
 * not there now is not looked for: without WAL, or in a mode of locking without `-shm`.
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
        // Somebody else with this handle has left WAL.
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

/** Path of the main database; empty where it has none. */
export function fileOf(db: SqliteHandle): string {
  const databases = db.prepare('PRAGMA database_list').all() as SqliteRow[];
  const file = databases.find((row) => row['name'] === 'main')?.['file'];
  return typeof file === 'string' ? file : '';
}

function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * The store's identity, made in one transaction with its tables.
 * @param isMade this transaction made the store.
 * @returns what says it, and once that it is new.
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
