// The tables of the store in SQLite, and the SQL steps that raise their version (admission.md §7.7).
// Called by open.ts, at each open and before each transaction.
import { ConfigError } from '../../shared/errors.ts';
import { leadsTo, missingSteps, newest, wrongVersion } from '../schema-version.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';

/**
 * The first version of the schema. Until 0.1.0 is published it is edited in place; from then on each change is a new
 * version. Opening a file of an earlier version upgrades it to the newest. Older packages then refuse the file; those
 * that have it open do so with their next transaction.
 *
 * The tables live in the user's own database file, so that `ctx.transaction` can write beside them. Hence their prefix,
 * and a table of the store's own for the version: `PRAGMA user_version` belongs to the user's migrations.
 *
 *     webhook_scope     senders (within 0) and key ids (within their sender), each with its counts. 0: processes, and
 *                       the counts over all senders
 *     webhook_row       one row for each kind, scope and name: its text is `data`; searches use the other columns
 *     webhook_copy      id of a row → its body; a separate table, because an UPDATE rewrites the whole row
 *     webhook_identity  one row: the identity of the store
 *
 * The cost of a call of `accept` is the number of pages that it writes. So its rows are inserted side by side, and all
 * counts are on one page. Ids grow with insertion, so their order is "oldest first". Times are Unix ms; a time that is
 * NULL means never. Names are encoded (`text.ts`). `crashes` is set only for suspects; `list` and `waits_for` are
 * those of `Write`.
 *
 * Indexes are partial, so that a finished record is only in those of its name and its expiry.
 */
const TABLES = `
CREATE TABLE webhook_scope (
  id INTEGER PRIMARY KEY,
  within INTEGER NOT NULL,
  name TEXT NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  nonces INTEGER NOT NULL DEFAULT 0,
  UNIQUE (within, name)
) STRICT;
INSERT INTO webhook_scope (id, within, name) VALUES (0, -1, '');
CREATE TABLE webhook_row (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  scope INTEGER NOT NULL,
  name TEXT NOT NULL,
  expires_at INTEGER,
  due_at INTEGER,
  crashes INTEGER,
  list TEXT,
  waits_for TEXT,
  data TEXT NOT NULL,
  UNIQUE (kind, scope, name)
) STRICT;
CREATE INDEX webhook_row_expiry ON webhook_row (kind, expires_at, scope) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_row_due ON webhook_row (scope, due_at) WHERE due_at IS NOT NULL AND crashes IS NULL;
CREATE INDEX webhook_row_suspect ON webhook_row (crashes) WHERE crashes IS NOT NULL;
CREATE INDEX webhook_row_list ON webhook_row (scope, list) WHERE list IS NOT NULL;
CREATE INDEX webhook_row_parked ON webhook_row (scope, waits_for) WHERE waits_for IS NOT NULL;
CREATE TABLE webhook_copy (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE webhook_identity (id TEXT NOT NULL) STRICT;
`;

/** The SQL steps that create the schema, and raise it from each version to the next (`missingSteps`). */
export const STEPS: readonly string[] = [TABLES];

/** The version of the schema that this package works with. */
export const KNOWN: number = newest(STEPS);

const STORE = { store: 'sqliteStore', place: 'the database has', own: 'a database' };

/**
 * Upgrades the schema to the version of this package, inside one transaction. If several processes call it together,
 * one does the work, and the others find no step missing.
 *
 * @returns the version before; 0: there was no schema.
 * @throws ConfigError if a newer version of the package made the schema, or one from before the first release.
 */
export function migrate(db: SqliteHandle, steps: readonly string[] = STEPS): number {
  db.exec('CREATE TABLE IF NOT EXISTS webhook_schema (version INTEGER NOT NULL) STRICT');
  const found = versionOf(db.prepare(VERSION).get());
  const missing = missingSteps(STORE, steps, found);
  for (const step of missing) db.exec(step);
  if (missing.length === 0) return found;
  db.exec('DELETE FROM webhook_schema');
  db.exec(`INSERT INTO webhook_schema (version) VALUES (${newest(steps)})`);
  return found;
}

const VERSION = 'SELECT max(version) AS version FROM webhook_schema';

/** Reads the version from a result row; 0: there is no schema yet. */
const versionOf = (row: unknown): number => Number((row as SqliteRow)['version'] ?? 0);

const REPLACED = 'sqliteStore: another database has replaced the one that was opened. Restart this process.';

/**
 * Makes a function that checks the schema's version in each transaction. Another process may have opened the file with
 * a newer package, or another file may have replaced it.
 *
 * @returns a function that throws ConfigError in these cases.
 */
export function versionCheck(db: SqliteHandle): () => void {
  const find = db.prepare(VERSION);
  return () => {
    const version = versionOf(find.get());
    if (version === KNOWN) return;
    if (leadsTo(KNOWN, version)) throw new ConfigError(REPLACED);
    throw wrongVersion(STORE, KNOWN, version);
  };
}
