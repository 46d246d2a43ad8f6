import type { Rows } from '../rules/rows.ts';
import type { Bodies } from './bodies.ts';
import type { SqliteHandle, SqliteRow, SqliteStatement } from './handle.ts';
import { CHANGES, changesOf, fromColumns, RECORD_COLUMNS, RECORD_MARKS, valuesOf } from './record-columns.ts';
import type { Senders } from './senders.ts';
import { columnText } from './text.ts';

const WHERE = 'WHERE sender_id = ? AND key = ?';

type Reading = Pick<Rows, 'record' | 'body'>;
type Writing = Pick<Rows, 'insertRecord' | 'updateRecord'>;

/**
 * One row an event.
 *
 *     find    sender, key, now → the record without its body; an expired one is absent
 *     body    sender, key → the first copy
 *     insert  all columns → 1 row where the key is new; where an expired record still has it, that goes first
 *     place   sender, key → where its body is
 *     update  what changes, by sender and key
 *     finish  the same for a record that is done, and has no body any more
 */
export function recordRows(db: SqliteHandle, senders: Senders, bodies: Bodies): Reading & Writing {
  return { ...reading(db, senders), ...writing(db, senders, bodies) };
}

function reading(db: SqliteHandle, senders: Senders): Reading {
  const find = db.prepare(
    `SELECT ${RECORD_COLUMNS} FROM webhook_record ${WHERE} AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const body = db.prepare(
    `SELECT b.body FROM webhook_record r JOIN webhook_body b ON b.id = r.place ${WHERE}`,
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

function writing(db: SqliteHandle, senders: Senders, bodies: Bodies): Writing {
  const update = db.prepare(`UPDATE webhook_record SET ${CHANGES} ${WHERE}`);
  const finish = db.prepare(`UPDATE webhook_record SET ${CHANGES}, place = 0 ${WHERE}`);
  const place = db.prepare(`SELECT place FROM webhook_record ${WHERE}`);
  return {
    insertRecord: inserting(db, senders, bodies),
    updateRecord: (row) => {
      const id = senders.senderId(row.sender);
      const key = columnText(row.key);
      const done = row.state === 'applied' || row.state === 'stale';
      if (done) bodies.drop(id, Number((place.get(id, key) as SqliteRow | undefined)?.['place'] ?? 0));
      (done ? finish : update).run(...changesOf(row), id, key);
    },
  };
}

/** The body first: the record takes its place. */
function inserting(db: SqliteHandle, senders: Senders, bodies: Bodies): Writing['insertRecord'] {
  const statement = (place: string): SqliteStatement =>
    db.prepare(
      `INSERT INTO webhook_record (sender_id, key, ${RECORD_COLUMNS}, place) VALUES (?, ?, ${RECORD_MARKS}, ${place}) ON CONFLICT DO NOTHING`,
    );
  const insertOpen = statement('last_insert_rowid()');
  const insertDone = statement('0');
  const remove = db.prepare(`DELETE FROM webhook_record ${WHERE} RETURNING place`);
  return (row, body) => {
    const id = senders.senderId(row.sender);
    const values = [id, columnText(row.key), ...valuesOf(row)];
    if (body) bodies.keep(id, body);
    const insert = body ? insertOpen : insertDone;
    senders.count(id, { entries: 1 });
    if (Number(insert.run(...values).changes) > 0) return;
    // The row that goes first has had no INSERT with a rowid after the body's: it is still the last one.
    const [gone] = remove.all(...values.slice(0, 2)) as SqliteRow[];
    senders.count(id, { entries: -1 });
    bodies.drop(id, Number(gone?.['place'] ?? 0));
    insert.run(...values);
  };
}

function bytes(column: SqliteRow[string] | undefined): Uint8Array {
  // libsql: ArrayBuffer; better-sqlite3: Buffer. One shape for callers, and theirs to keep.
  return column instanceof ArrayBuffer || column instanceof Uint8Array
    ? new Uint8Array(column)
    : new Uint8Array();
}
