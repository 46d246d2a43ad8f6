import { statSync } from 'node:fs';
import { Fault } from '../../errors.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';

/** Where a connection's database is. */
export interface Place {
  /**
   * Before each transaction: a file that was deleted, moved or replaced under its connection is still written to, and
   * gone when the connection closes. SQLite itself looks in rollback modes only (SQLITE_READONLY_DBMOVED).
   * @throws Fault `store_unavailable` until the same file is back.
   */
  check(): void;
}

/** Of an open connection, as it is now. `:memory:` and temporary databases are nowhere. */
export function placeOf(db: SqliteHandle): Place {
  const file = fileOf(db);
  const inode = file === '' ? undefined : inodeOf(file);
  return {
    check: () => {
      if (inode === undefined || inodeOf(file) === inode) return;
      throw new Fault(
        'store_unavailable',
        `SQLite: ${file} was deleted, moved or replaced while it was open. Put it back; if it is to be another one, restart.`,
      );
    },
  };
}

/** Path of the main database; empty where it has none. */
export function fileOf(db: SqliteHandle): string {
  const databases = db.prepare('PRAGMA database_list').all() as SqliteRow[];
  const file = databases.find((row) => row['name'] === 'main')?.['file'];
  return typeof file === 'string' ? file : '';
}

function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}
