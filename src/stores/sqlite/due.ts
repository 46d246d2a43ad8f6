import type { RecordRow, RowPage, Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';
import { fromColumns, RECORD_COLUMNS } from './record-columns.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

const RECORD = `SELECT r.place, r.sender_id, s.url, r.key, ${RECORD_COLUMNS.replaceAll(/\w+/g, 'r.$&')}
  FROM webhook_record r JOIN webhook_sender s ON s.id = r.sender_id`;

/**
 * What workers and operators look for, each along an index of its own; none scans.
 *
 *     due      now → the record due earliest, of those the oldest (records due never have `due_at` null)
 *     next     → when that is, or was
 *     parked   sender, task → the oldest record that waits for the task
 *     list     sender, state, place, now, limit → unexpired records behind that place, oldest first
 *     senders  → all senders; few: a list of all goes through them and merges
 *
 * A worker's call runs in one transaction: what it found due is due until it is leased.
 */
export function dueRows(
  db: SqliteHandle,
  senders: Senders,
): Pick<Rows, 'due' | 'nextDue' | 'parked' | 'page'> {
  const due = db.prepare(`${RECORD} WHERE r.due_at <= ? ORDER BY r.due_at, r.place LIMIT 1`);
  const next = db.prepare(
    'SELECT due_at FROM webhook_record WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1',
  );
  const parked = db.prepare(
    `${RECORD} WHERE r.sender_id = ? AND r.task_id = ? AND r.parked_until > 0 ORDER BY r.place LIMIT 1`,
  );
  const one = (row: unknown): RecordRow | undefined => (row ? recordOf(row as SqliteRow) : undefined);
  return {
    due: (now) => one(due.get(now)),
    nextDue: () => {
      const row = next.get() as SqliteRow | undefined;
      return row && Number(row['due_at']);
    },
    parked: (sender, taskId) => one(parked.get(senders.senderId(sender), columnText(taskId))),
    page: pages(db, senders),
  };
}

function pages(db: SqliteHandle, senders: Senders): Rows['page'] {
  const all = db.prepare('SELECT id FROM webhook_sender');
  // `place > 0` is said though it is implied: a partial index is used only where the statement has its condition.
  const list = db.prepare(
    `${RECORD} WHERE r.sender_id = ? AND r.state = ? AND r.place > 0 AND r.place > ?
      AND (r.expires_at IS NULL OR r.expires_at > ?) ORDER BY r.place LIMIT ?`,
  );
  return ({ state, sender, limit, after }, now): RowPage => {
    const ids =
      sender === undefined
        ? (all.all() as SqliteRow[]).map((row) => Number(row['id']))
        : [senders.senderId(sender)];
    // One more than asked for, of each: whether there is another page.
    const found = ids.flatMap((id) => list.all(id, state, Number(after ?? 0), now, limit + 1) as SqliteRow[]);
    const behind = found.sort((a, b) => Number(a['place']) - Number(b['place']));
    const rows = behind.slice(0, limit);
    const last = rows.at(-1);
    const more = behind.length > rows.length && last !== undefined;
    return { rows: rows.map(recordOf), ...(more && { next: String(Number(last['place'])) }) };
  };
}

function recordOf(row: SqliteRow): RecordRow {
  return fromColumns(fromColumnText(textOf(row, 'url')), fromColumnText(textOf(row, 'key')), row);
}
