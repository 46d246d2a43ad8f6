import { ConfigError } from '../../errors.ts';
import { unknownVersion } from '../schema-version.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';

/**
 * Versions of the schema. What makes one is never changed once a release has it: a test holds its text. What is to be
 * otherwise is a new version, and an open brings a file of any version before to the newest. A file has the version of the
 * newest package that opened it; older ones refuse it, those that have it open with their next transaction.
 *
 * Version 2. The tables live in the owner's own database file, so that `ctx.transaction` can write beside them:
 * hence the prefix, and the version in a table of our own (`PRAGMA user_version` belongs to the owner's migrations).
 *
 *     webhook_scope  senders (within 0), key ids (within their sender); 0: processes, and all. With what is counted
 *     webhook_row    (kind, scope, name) → data, opaque here; beside it what is searched
 *     webhook_copy   id of a row → its body; apart, for an UPDATE rewrites the whole row
 *
 * What an accept costs is the pages that it writes: its rows are inserted side by side, and all counts are on one page.
 * Ids grow with insertion among the rows that there are: the order "oldest first". Instants are Unix ms; null is never.
 * Names are encoded (`text.ts`). `crashes` makes a suspect, `list` and `waits_for` are as `Write` has them.
 *
 * Indexes are partial, so that a finished record is in none but its name's and the expiry's.
 */
const ROWS = `
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
`;

/** JSON of a text of version 1, as it was before it was encoded. */
const plain = (column: string): string =>
  `json(CASE WHEN substr(${column}, 1, 1) = char(1) THEN substr(${column}, 2) ELSE json_quote(${column}) END)`;

const flag = (column: string): string => `json(iif(${column}, 'true', 'false'))`;

/** A row's data: what is null is left out. */
const data = (members: Readonly<Record<string, string>>): string =>
  `json_patch('{}', json_object(${Object.entries(members)
    .map(([name, value]) => `'${name}', ${value}`)
    .join(', ')}))`;

/**
 * What version 1 left, whose tables had a column for each member. Senders and key ids, each counted from 1, share ids now
 * as their counts did. A record that had a body keeps that one's id, by which it was listed.
 */
const FROM_1 = `
INSERT INTO webhook_scope (id, within, name)
  SELECT 2 * id, 0, url FROM webhook_sender UNION ALL SELECT 2 * id + 1, 2 * sender_id, keyid FROM webhook_keyid;
INSERT INTO webhook_row (id, kind, scope, name, expires_at, due_at, list, waits_for, data)
  SELECT nullif(place, 0), 'record', 2 * sender_id, key, expires_at, due_at,
    iif(state IN ('queued', 'leased', 'dead'), state, NULL), iif(parked_until > 0, task_id, NULL), ${data({
      state: 'state',
      claim: 'claim',
      claimedBy: 'claimed_by',
      owner: 'owner',
      fence: 'fence',
      leaseUntil: 'lease_until',
      attempts: 'attempts',
      crashes: 'crashes',
      acked: flag('acked'),
      insertedAt: 'inserted_at',
      notBefore: 'not_before',
      parkedUntil: 'parked_until',
      lastError: plain('last_error'),
      rawHash: 'raw_hash',
      canonicalHash: 'canonical_hash',
      task: `json(iif(task_id IS NULL, NULL, json_object('id', ${plain('task_id')}, 'instant', instant,
        'instantMs', instant_ms, 'terminal', ${flag('terminal')})))`,
      reemission: flag('reemission'),
      afterTerminal: flag('after_terminal'),
      ahead: flag('ahead'),
      afterFinal: flag('after_final'),
      bodyBytes: 'iif(place > 0, body_bytes, 0)',
      expiresAt: 'expires_at',
    })}
  FROM webhook_record ORDER BY place = 0, place;
INSERT INTO webhook_row (kind, scope, name, expires_at, data)
  SELECT 'task', 2 * sender_id, task_id, expires_at, ${data({
    holder: plain('holder'),
    mark: 'mark',
    markTerminal: flag('mark_terminal'),
    expiresAt: 'expires_at',
  })} FROM webhook_task;
INSERT INTO webhook_row (kind, scope, name, expires_at, data)
  SELECT 'nonce', 2 * keyid_id + 1, nonce, expires_at, ${data({
    key: plain('record_key'),
    acceptId: 'accept_id',
    expiresAt: 'expires_at',
  })} FROM webhook_nonce;
INSERT INTO webhook_row (kind, scope, name, expires_at, data)
  SELECT 'notification', 2 * sender_id, notification_id, expires_at, ${data({
    key: plain('record_key'),
    expiresAt: 'expires_at',
  })} FROM webhook_notification;
INSERT INTO webhook_copy SELECT id, body FROM webhook_body;
UPDATE webhook_scope SET rows = n.rows, bytes = n.bytes
  FROM (SELECT scope, count(*) AS rows, total(length(body)) AS bytes
    FROM webhook_row r LEFT JOIN webhook_copy c ON c.id = r.id GROUP BY scope) n WHERE n.scope = webhook_scope.id;
UPDATE webhook_scope SET nonces = (SELECT total(k.rows) FROM webhook_scope k WHERE k.within = webhook_scope.id)
  WHERE within = 0;
UPDATE webhook_scope SET nonces = (SELECT total(s.nonces) FROM webhook_scope s WHERE s.within = 0) WHERE id = 0;
DROP TABLE webhook_record;
DROP TABLE webhook_body;
DROP TABLE webhook_task;
DROP TABLE webhook_nonce;
DROP TABLE webhook_notification;
DROP TABLE webhook_count;
DROP TABLE webhook_keyid;
DROP TABLE webhook_sender;
`;
/** What makes one version of another; from 0: of a file that has none. */
export interface SchemaStep {
  readonly from: number;
  readonly to: number;
  readonly sql: string;
}

export const STEPS: readonly SchemaStep[] = [
  { from: 0, to: 2, sql: ROWS },
  { from: 1, to: 2, sql: ROWS + FROM_1 },
];

const newestOf = (steps: readonly SchemaStep[]): number => Math.max(...steps.map(({ to }) => to));

/** The version that this package works with. */
export const KNOWN: number = newestOf(STEPS);

/**
 * Brings the schema to this version. Runs inside one transaction, so that of several processes that start at once
 * one does it and the others find it done.
 * @returns the version before; 0: there was none.
 * @throws ConfigError where a newer version of the package made the schema: it may mean what this one cannot know.
 */
export function migrate(db: SqliteHandle, steps: readonly SchemaStep[] = STEPS): number {
  db.exec('CREATE TABLE IF NOT EXISTS webhook_schema (version INTEGER NOT NULL) STRICT');
  const found = versionOf(db.prepare(VERSION).get());
  const newest = newestOf(steps);
  let version = found;
  while (version !== newest) {
    const step = steps.find(({ from }) => from === version);
    if (!step) throw notKnown(version);
    db.exec(step.sql);
    version = step.to;
  }
  if (version === found) return found;
  db.exec('DELETE FROM webhook_schema');
  db.exec(`INSERT INTO webhook_schema (version) VALUES (${version})`);
  return found;
}

const VERSION = 'SELECT max(version) AS version FROM webhook_schema';

/** 0: none yet. */
const versionOf = (row: unknown): number => Number((row as SqliteRow)['version'] ?? 0);

function notKnown(version: number): ConfigError {
  const at = { store: 'sqliteStore', place: 'the database has', own: 'a database' };
  return unknownVersion({ ...at, known: KNOWN }, version);
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
    if (version > KNOWN) throw notKnown(version);
    if (version < KNOWN) throw new ConfigError(OLDER);
  };
}
