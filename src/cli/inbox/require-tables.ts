import { UsageError } from '../usage-error.ts';

/** A connection that can only read: what is looked into may be another application's database. */
export interface ReadOnlyHandle {
  exec(sql: string): unknown;
  prepare(sql: string): { all(): unknown[] };
  close(): unknown;
}

/** Two, for a name alone may be another's. Both are made in one transaction (`stores/sqlite/schema`); `record` by version 1. */
const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table'
  AND name IN ('webhook_schema', 'webhook_row', 'webhook_record')`;

/** For another connection that recovers or checkpoints the file just now, ms. */
const BUSY_MS = 2000;

function tablesOf(open: () => ReadOnlyHandle): number {
  const db = open();
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    return db.prepare(TABLES).all().length;
  } finally {
    db.close();
  }
}

/**
 * Refuses a file that no receiver has stored in: a store that is opened makes its tables and sets WAL, and in another
 * application's database nobody asked for that.
 * @throws UsageError
 */
export function requireTables(given: string, open: () => ReadOnlyHandle): void {
  let found: number;
  try {
    found = tablesOf(open);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${given}: ${reason}. Expected the database that the receiver's sqliteStore has.`);
  }
  if (found < 2) {
    throw new UsageError(
      `${given}: no tables of sqliteStore are in it. Expected the database that the receiver's sqliteStore has; nothing was changed.`,
    );
  }
}
