import { DatabaseSync } from 'node:sqlite';
import type { SqliteHandle, SqliteStatement } from '../../../src/stores/sqlite.ts';

export interface Watched extends SqliteHandle {
  readonly db: DatabaseSync;
  /** Every `exec`, as it came. */
  readonly log: string[];
  /** Called before an `exec` reaches SQLite; may throw what SQLite would. */
  before: (sql: string) => void;
  /** What is prepared in place of a statement. */
  instead: (sql: string) => string;
}

/** A real connection that tells what it was asked, and where a test wants it refuses. */
export function watched(file: string): Watched {
  const db = new DatabaseSync(file);
  const handle: Watched = {
    db,
    log: [],
    before: () => {},
    instead: (sql) => sql,
    exec: (sql) => {
      handle.log.push(sql);
      handle.before(sql);
      db.exec(handle.instead(sql));
    },
    prepare: (sql): SqliteStatement => db.prepare(handle.instead(sql)),
    close: () => db.close(),
  };
  return handle;
}

export function busyError(): Error {
  return Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });
}

/** How often the log has a statement. */
export function times(handle: Watched, sql: string): number {
  return handle.log.filter((line) => line === sql).length;
}
