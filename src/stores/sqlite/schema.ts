import { ConfigError } from '../../errors.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';

/**
 * Version 1. The tables live in the owner's own database file, so that `ctx.transaction` can write beside them:
 * hence the prefix, and the version in a table of our own (`PRAGMA user_version` belongs to the owner's migrations).
 *
 *     webhook_sender        url → id; counts its records, tasks and notification ids, and bytes of unfinished bodies
 *     webhook_keyid         (sender, key id) → id; counts its nonces
 *     webhook_total         one row: nonces of all senders
 *     webhook_nonce         (key id, nonce) → the event that burned it (null: none) and the accept that did
 *     webhook_record        (sender, idempotency key) → state, lease, fingerprints
 *     webhook_body          record → its first copy until DONE; apart, for an UPDATE rewrites the whole row
 *     webhook_task          (sender, task id) → who holds it, the newest status applied
 *     webhook_notification  (sender, notification id) → the event that brought it first
 *
 * Counts are kept by triggers: an accept never scans, and no statement can forget one. Every instant is Unix ms but
 * `instant` and `mark`, which are `instantKey`s and compare bytewise (BINARY). `expires_at` and `due_at` null mean
 * never. Keys are encoded (`text.ts`).
 *
 * Indexes are partial, so that a finished record is in none but its key's and the expiry's: `due` for workers (null
 * in inline mode), `parked` for whoever frees a task, `open` for lists. A record's id grows with its insertion, and
 * SQLite keeps it at the end of each index entry: that is the order "oldest first".
 */
const VERSION_1 = `
CREATE TABLE webhook_sender (
  id INTEGER PRIMARY KEY,
  url TEXT NOT NULL UNIQUE,
  entries INTEGER NOT NULL DEFAULT 0,
  pending_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE webhook_keyid (
  id INTEGER PRIMARY KEY,
  sender_id INTEGER NOT NULL,
  keyid TEXT NOT NULL,
  nonces INTEGER NOT NULL DEFAULT 0,
  UNIQUE (sender_id, keyid)
) STRICT;
CREATE TABLE webhook_total (nonces INTEGER NOT NULL) STRICT;
INSERT INTO webhook_total (nonces) VALUES (0);
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
  id INTEGER PRIMARY KEY,
  sender_id INTEGER NOT NULL,
  key TEXT NOT NULL,
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
  UNIQUE (sender_id, key)
) STRICT;
CREATE INDEX webhook_record_expiry ON webhook_record (expires_at, sender_id) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_record_due ON webhook_record (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_record_parked ON webhook_record (sender_id, task_id) WHERE parked_until > 0;
CREATE INDEX webhook_record_open ON webhook_record (sender_id, state)
  WHERE state IN ('queued', 'leased', 'dead');
CREATE TABLE webhook_body (record_id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
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
CREATE TRIGGER webhook_nonce_new AFTER INSERT ON webhook_nonce BEGIN
  UPDATE webhook_keyid SET nonces = nonces + 1 WHERE id = new.keyid_id;
  UPDATE webhook_total SET nonces = nonces + 1;
END;
CREATE TRIGGER webhook_nonce_gone AFTER DELETE ON webhook_nonce BEGIN
  UPDATE webhook_keyid SET nonces = nonces - 1 WHERE id = old.keyid_id;
  UPDATE webhook_total SET nonces = nonces - 1;
END;
CREATE TRIGGER webhook_record_new AFTER INSERT ON webhook_record BEGIN
  UPDATE webhook_sender SET entries = entries + 1, pending_bytes = pending_bytes + new.body_bytes
    WHERE id = new.sender_id;
END;
CREATE TRIGGER webhook_record_done AFTER UPDATE OF body_bytes ON webhook_record
  WHEN new.body_bytes <> old.body_bytes BEGIN
  UPDATE webhook_sender SET pending_bytes = pending_bytes + new.body_bytes - old.body_bytes
    WHERE id = new.sender_id;
  DELETE FROM webhook_body WHERE record_id = new.id AND new.body_bytes = 0;
END;
CREATE TRIGGER webhook_record_gone AFTER DELETE ON webhook_record BEGIN
  UPDATE webhook_sender SET entries = entries - 1, pending_bytes = pending_bytes - old.body_bytes
    WHERE id = old.sender_id;
  DELETE FROM webhook_body WHERE record_id = old.id;
END;
CREATE TRIGGER webhook_task_new AFTER INSERT ON webhook_task BEGIN
  UPDATE webhook_sender SET entries = entries + 1 WHERE id = new.sender_id;
END;
CREATE TRIGGER webhook_task_gone AFTER DELETE ON webhook_task BEGIN
  UPDATE webhook_sender SET entries = entries - 1 WHERE id = old.sender_id;
END;
CREATE TRIGGER webhook_notification_new AFTER INSERT ON webhook_notification BEGIN
  UPDATE webhook_sender SET entries = entries + 1 WHERE id = new.sender_id;
END;
CREATE TRIGGER webhook_notification_gone AFTER DELETE ON webhook_notification BEGIN
  UPDATE webhook_sender SET entries = entries - 1 WHERE id = old.sender_id;
END;
`;

/** One step a version: step n takes a schema of version n to n + 1. */
const MIGRATIONS: readonly string[] = [VERSION_1];

/**
 * Brings the schema to this version. Runs inside one transaction, so that of several processes that start at once
 * one does it and the others find it done.
 * @throws ConfigError where a newer version of the package made the schema: it may mean what this one cannot know.
 */
export function migrate(db: SqliteHandle): void {
  db.exec('CREATE TABLE IF NOT EXISTS webhook_schema (version INTEGER NOT NULL) STRICT');
  const row = db.prepare('SELECT version FROM webhook_schema').get() as SqliteRow | undefined;
  const version = row === undefined ? 0 : Number(row['version']);
  if (version > MIGRATIONS.length) {
    throw new ConfigError(
      `sqliteStore: the database has schema version ${version}, this package knows ${MIGRATIONS.length}. ` +
        'Upgrade proto-webhooks in this process, or give it a database of its own.',
    );
  }
  if (version === MIGRATIONS.length) return;
  for (const step of MIGRATIONS.slice(version)) db.exec(step);
  db.exec('DELETE FROM webhook_schema');
  db.exec(`INSERT INTO webhook_schema (version) VALUES (${MIGRATIONS.length})`);
}
