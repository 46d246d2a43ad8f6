import { dueAt } from '../kernel/park.ts';
import type { Claim, RecordRow, RecordState, Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteRow, SqliteValue } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

/** What changes in a record's life; the rest is written once. */
const CHANGING = [
  'state',
  'claim',
  'claimed_by',
  'owner',
  'fence',
  'lease_until',
  'attempts',
  'crashes',
  'acked',
  'not_before',
  'parked_until',
  'due_at',
  'last_error',
  'after_terminal',
  'ahead',
  'body_bytes',
  'expires_at',
] as const;
const FIXED = [
  'inserted_at',
  'raw_hash',
  'canonical_hash',
  'task_id',
  'instant',
  'instant_ms',
  'terminal',
  'reemission',
  'after_final',
] as const;

type Column = (typeof CHANGING)[number] | (typeof FIXED)[number];

const flag = (value: boolean): number => (value ? 1 : 0);

const COLUMN: Record<Column, (row: RecordRow) => SqliteValue> = {
  state: (row) => row.state,
  claim: (row) => row.claim,
  claimed_by: (row) => row.claimedBy,
  owner: (row) => row.owner,
  fence: (row) => row.fence,
  lease_until: (row) => row.leaseUntil,
  attempts: (row) => row.attempts,
  crashes: (row) => row.crashes,
  acked: (row) => flag(row.acked),
  inserted_at: (row) => row.insertedAt,
  not_before: (row) => row.notBefore,
  parked_until: (row) => row.parkedUntil,
  due_at: dueAt,
  last_error: (row) => (row.lastError === null ? null : columnText(row.lastError)),
  after_terminal: (row) => flag(row.afterTerminal),
  ahead: (row) => flag(row.ahead),
  body_bytes: (row) => row.bodyBytes,
  expires_at: (row) => row.expiresAt,
  raw_hash: (row) => row.rawHash,
  canonical_hash: (row) => row.canonicalHash,
  task_id: (row) => (row.task ? columnText(row.task.id) : null),
  instant: (row) => row.task?.instant ?? null,
  instant_ms: (row) => row.task?.instantMs ?? null,
  terminal: (row) => flag(row.task?.terminal ?? false),
  reemission: (row) => flag(row.reemission),
  after_final: (row) => flag(row.afterFinal),
};

const NAMES: readonly Column[] = [...CHANGING, ...FIXED];
/** The columns that make a record, for a SELECT. */
export const RECORD_COLUMNS: string = NAMES.join(', ');
const WHERE = 'WHERE sender_id = ? AND key = ?';

type Reading = Pick<Rows, 'record' | 'body'>;
type Writing = Pick<Rows, 'insertRecord' | 'updateRecord'>;

/**
 * One row an event.
 *
 *     find    sender, key, now → the record without its body; an expired one is absent
 *     body    sender, key → the first copy
 *     insert  all columns → 1 row where the key is new; where an expired record still has it, that goes first
 *     keep    body → stored beside the record just inserted
 *     update  what changes, by sender and key; with `body_bytes` 0 a trigger drops the body
 */
export function recordRows(db: SqliteHandle, senders: Senders): Reading & Writing {
  return { ...reading(db, senders), ...writing(db, senders) };
}

function reading(db: SqliteHandle, senders: Senders): Reading {
  const find = db.prepare(
    `SELECT ${RECORD_COLUMNS} FROM webhook_record ${WHERE} AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const body = db.prepare(
    `SELECT b.body FROM webhook_record r JOIN webhook_body b ON b.record_id = r.id ${WHERE}`,
  );
  return {
    record: (sender, key, now) => {
      const row = find.get(senders.senderId(sender), columnText(key), now) as SqliteRow | undefined;
      return row && fromColumns(sender, key, row);
    },
    body: (sender, key) => {
      const row = body.get(senders.senderId(sender), columnText(key)) as SqliteRow | undefined;
      return bytes(row?.['body']);
    },
  };
}

function writing(db: SqliteHandle, senders: Senders): Writing {
  const marks = NAMES.map(() => '?').join(', ');
  const insert = db.prepare(
    `INSERT INTO webhook_record (sender_id, key, ${NAMES.join(', ')}) VALUES (?, ?, ${marks}) ON CONFLICT DO NOTHING`,
  );
  const keep = db.prepare(
    `INSERT INTO webhook_body (record_id, body) SELECT id, ? FROM webhook_record ${WHERE}`,
  );
  const changes = CHANGING.map((name) => `${name} = ?`).join(', ');
  const update = db.prepare(`UPDATE webhook_record SET ${changes} ${WHERE}`);
  const remove = db.prepare(`DELETE FROM webhook_record ${WHERE}`);
  return {
    insertRecord: (row, body) => {
      const id = senders.senderId(row.sender);
      const key = columnText(row.key);
      const values = NAMES.map((name) => COLUMN[name](row));
      if (Number(insert.run(id, key, ...values).changes) === 0) {
        remove.run(id, key);
        insert.run(id, key, ...values);
      }
      if (body && row.bodyBytes > 0) keep.run(body, id, key);
    },
    updateRecord: (row) => {
      const values = CHANGING.map((name) => COLUMN[name](row));
      update.run(...values, senders.senderId(row.sender), columnText(row.key));
    },
  };
}

function bytes(column: SqliteRow[string] | undefined): Uint8Array {
  // libsql: ArrayBuffer; better-sqlite3: Buffer. One shape for callers, and theirs to keep.
  return column instanceof ArrayBuffer || column instanceof Uint8Array
    ? new Uint8Array(column)
    : new Uint8Array();
}

/** A record from the columns `RECORD_COLUMNS`. */
export function fromColumns(sender: string, key: string, row: SqliteRow): RecordRow {
  const number = (name: Column): number => Number(row[name]);
  const taskId = nullableTextOf(row, 'task_id');
  const instant = nullableTextOf(row, 'instant');
  const lastError = nullableTextOf(row, 'last_error');
  return {
    sender,
    key,
    state: textOf(row, 'state') as RecordState,
    claim: textOf(row, 'claim') as Claim,
    claimedBy: textOf(row, 'claimed_by'),
    owner: nullableTextOf(row, 'owner'),
    fence: number('fence'),
    leaseUntil: number('lease_until'),
    attempts: number('attempts'),
    crashes: number('crashes'),
    acked: number('acked') === 1,
    insertedAt: number('inserted_at'),
    notBefore: number('not_before'),
    parkedUntil: number('parked_until'),
    lastError: lastError === null ? null : fromColumnText(lastError),
    rawHash: textOf(row, 'raw_hash'),
    canonicalHash: nullableTextOf(row, 'canonical_hash'),
    task:
      taskId === null
        ? null
        : {
            id: fromColumnText(taskId),
            ...(instant !== null && { instant }),
            ...(row['instant_ms'] != null && { instantMs: number('instant_ms') }),
            terminal: number('terminal') === 1,
          },
    reemission: number('reemission') === 1,
    afterTerminal: number('after_terminal') === 1,
    ahead: number('ahead') === 1,
    afterFinal: number('after_final') === 1,
    bodyBytes: number('body_bytes'),
    expiresAt: row['expires_at'] == null ? null : number('expires_at'),
  };
}
