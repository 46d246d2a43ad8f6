import { ConfigError } from '../../errors.ts';
import { unknownVersion } from '../schema-version.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';

/**
 * Versions of the schema. Step n is never changed once a release has made it: a test holds its text. What is to be
 * otherwise is a new step, and an open brings a file of any version before to the newest. A file has the version of the
 * newest package that opened it; older ones refuse it, those that have it open with their next transaction.
 *
 * Version 1. The tables live in the owner's own database file, so that `ctx.transaction` can write beside them:
 * hence the prefix, and the version in a table of our own (`PRAGMA user_version` belongs to the owner's migrations).
 *
 *     webhook_sender        url → id
 *     webhook_keyid         (sender, key id) → id
 *     webhook_count         sender, key id or all → records, tasks and notification ids; bytes of bodies; nonces
 *     webhook_nonce         (key id, nonce) → the event that burned it (null: none) and the accept that did
 *     webhook_record        (sender, idempotency key) → state, lease, fingerprints
 *     webhook_body          place → the first copy of a record that is not done; apart, for an UPDATE rewrites the whole row
 *     webhook_task          (sender, task id) → who holds it, the newest status applied
 *     webhook_notification  (sender, notification id) → the event that brought it first
 *
 * What an accept costs is the pages that it writes, so a row is in one tree and not in a table and its key's index
 * (WITHOUT ROWID), and all counts are on one page (`counts.ts`). Every instant is Unix ms but `instant` and `mark`,
 * which are `instantKey`s and compare bytewise (BINARY). `expires_at` and `due_at` null mean never. Keys are encoded
 * (`text.ts`).
 *
 * `place` is the id of the record's body: it grows with insertion among the records that have one, and is the order
 * "oldest first". A record that is done has none: 0, for ids of bodies that are gone are given again.
 *
 * Indexes are partial, so that a finished record is in none but its key's and the expiry's: `due` for workers (null
 * in inline mode), `parked` for whoever frees a task, `open` for lists.
 */
const VERSION_1 = `
CREATE TABLE webhook_sender (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE webhook_keyid (
  id INTEGER PRIMARY KEY,
  sender_id INTEGER NOT NULL,
  keyid TEXT NOT NULL,
  UNIQUE (sender_id, keyid)
) STRICT;
CREATE TABLE webhook_count (
  owner INTEGER PRIMARY KEY,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  nonces INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_nonce (
  keyid_id INTEGER NOT NULL,
  nonce TEXT NOT NULL,
  record_key TEXT,
  accept_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (keyid_id, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_nonce_expiry ON webhook_nonce (expires_at, keyid_id);
CREATE TABLE webhook_record (
  sender_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  place INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'applied', 'stale', 'dead')),
  claim TEXT NOT NULL,
  claimed_by TEXT NOT NULL,
  owner TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  acked INTEGER NOT NULL,
  inserted_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  parked_until INTEGER NOT NULL,
  due_at INTEGER,
  last_error TEXT,
  raw_hash TEXT NOT NULL,
  canonical_hash TEXT,
  task_id TEXT,
  instant TEXT COLLATE BINARY,
  instant_ms INTEGER,
  terminal INTEGER NOT NULL,
  reemission INTEGER NOT NULL,
  after_terminal INTEGER NOT NULL,
  ahead INTEGER NOT NULL,
  after_final INTEGER NOT NULL,
  body_bytes INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (sender_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_record_expiry ON webhook_record (expires_at, sender_id) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_record_due ON webhook_record (due_at, place) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_record_parked ON webhook_record (sender_id, task_id, place) WHERE parked_until > 0;
CREATE INDEX webhook_record_open ON webhook_record (sender_id, state, place) WHERE place > 0;
CREATE TABLE webhook_body (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE webhook_task (
  sender_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  holder TEXT,
  mark TEXT COLLATE BINARY,
  mark_terminal INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (sender_id, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_task_expiry ON webhook_task (expires_at, sender_id);
CREATE TABLE webhook_notification (
  sender_id INTEGER NOT NULL,
  notification_id TEXT NOT NULL,
  record_key TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (sender_id, notification_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_notification_expiry ON webhook_notification (expires_at, sender_id);
`;

/**
 * Version 2. Of a task its first terminal status is kept (JSON of `FirstTerminal`), of a final report its time; nonces are
 * counted of each sender too; and what is due is found for each sender apart, for they take turns. Of a record it is known
 * since when its waits count, and whether its last lease was an attempt. One that is a suspect is due in a column of its
 * own, so that those who look for the others never meet it; processes say until when they are alive.
 */
const VERSION_2 = `
ALTER TABLE webhook_task ADD COLUMN first_terminal TEXT;
ALTER TABLE webhook_notification ADD COLUMN instant TEXT;
INSERT INTO webhook_count (owner, entries, bytes, nonces)
  SELECT 2 * k.sender_id, 0, 0, sum(c.nonces) FROM webhook_keyid k JOIN webhook_count c ON c.owner = 2 * k.id + 1
  WHERE true GROUP BY k.sender_id ON CONFLICT (owner) DO UPDATE SET nonces = excluded.nonces;
DROP INDEX webhook_record_due;
CREATE INDEX webhook_record_due ON webhook_record (sender_id, due_at, place) WHERE due_at IS NOT NULL;
ALTER TABLE webhook_record ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_record ADD COLUMN set_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_record ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_record ADD COLUMN process TEXT;
ALTER TABLE webhook_record ADD COLUMN crashed_in TEXT;
ALTER TABLE webhook_record ADD COLUMN suspect_due_at INTEGER;
CREATE INDEX webhook_record_suspect ON webhook_record (crashes, place) WHERE suspect_due_at IS NOT NULL;
CREATE TABLE webhook_process (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Step n takes a schema of version n to n + 1. */
export const MIGRATIONS: readonly string[] = [VERSION_1, VERSION_2];

/**
 * Brings the schema to this version. Runs inside one transaction, so that of several processes that start at once
 * one does it and the others find it done.
 * @returns the version before; 0: there was none.
 * @throws ConfigError where a newer version of the package made the schema: it may mean what this one cannot know.
 */
export function migrate(db: SqliteHandle, steps: readonly string[] = MIGRATIONS): number {
  db.exec('CREATE TABLE IF NOT EXISTS webhook_schema (version INTEGER NOT NULL) STRICT');
  const version = versionOf(db.prepare(VERSION).get());
  if (version > steps.length || version < 0) throw notKnown(version);
  if (version === steps.length) return version;
  for (const step of steps.slice(version)) db.exec(step);
  db.exec('DELETE FROM webhook_schema');
  db.exec(`INSERT INTO webhook_schema (version) VALUES (${steps.length})`);
  return version;
}

const VERSION = 'SELECT max(version) AS version FROM webhook_schema';

/** 0: none yet. */
const versionOf = (row: unknown): number => Number((row as SqliteRow)['version'] ?? 0);

function notKnown(version: number): ConfigError {
  const at = { store: 'sqliteStore', place: 'the database has', own: 'a database' };
  return unknownVersion({ ...at, known: MIGRATIONS.length }, version);
}

const OLDER =
  'sqliteStore: the database has become one of an older schema version under its connection. Restart: a start brings it up to date.';

/**
 * For each transaction: another process may have opened the file with a newer package meanwhile.
 * @returns what throws ConfigError then.
 */
export function versionCheck(db: SqliteHandle): () => void {
  const find = db.prepare(VERSION);
  return () => {
    const version = versionOf(find.get());
    if (version > MIGRATIONS.length) throw notKnown(version);
    if (version < MIGRATIONS.length) throw new ConfigError(OLDER);
  };
}
