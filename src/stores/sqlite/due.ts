import type { RecordRow, QueueRows, RowPage } from '../rules/rows.ts';
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
 *     turn     sender, now → the sender behind it that has something due
 *     due      sender, now → its record due earliest, of those the oldest (records due never have `due_at` null)
 *     next     → when the earliest of all is due, or was
 *     far      sender, instant, limit → its records due later than that, the latest first
 *     farther  instant, limit → suspects due later than that
 *     suspect  now → of the suspects that are due the one with the fewest crashes, of those the oldest, whoever sent them
 *     sooner   → when the earliest suspect is due, or was; suspects are few
 *     parked   sender, task → the oldest record that waits for the task
 *     list     sender, state, place, now, limit → unexpired records behind that place, oldest first
 *     senders  → all senders; few: a list of all goes through them and merges
 *
 * A worker's call runs in one transaction: what it found due is due until it is leased. Senders take turns by their ids,
 * in each process from the one behind the last that it found something of.
 */
export function dueRows(
  db: SqliteHandle,
  senders: Senders,
): Pick<QueueRows, 'due' | 'nextDue' | 'far' | 'dueSuspect' | 'nextSuspect' | 'parked' | 'page'> {
  const turn = db.prepare(
    `SELECT id FROM webhook_sender WHERE id > ? AND EXISTS (
      SELECT 1 FROM webhook_record WHERE sender_id = webhook_sender.id AND due_at <= ?) ORDER BY id LIMIT 1`,
  );
  const due = db.prepare(
    `${RECORD} WHERE r.sender_id = ? AND r.due_at <= ? ORDER BY r.due_at, r.place LIMIT 1`,
  );
  const next = db.prepare(
    `SELECT min((SELECT due_at FROM webhook_record WHERE sender_id = webhook_sender.id AND due_at IS NOT NULL
      ORDER BY due_at LIMIT 1)) AS due_at FROM webhook_sender`,
  );
  let last = 0;
  const behind = (id: number, now: number): number | undefined => {
    const row = turn.get(id, now) as SqliteRow | undefined;
    return row && Number(row['id']);
  };
  const suspect = db.prepare(`${RECORD} WHERE r.suspect_due_at <= ? ORDER BY r.crashes, r.place LIMIT 1`);
  const sooner = db.prepare(
    'SELECT min(suspect_due_at) AS due_at FROM webhook_record WHERE suspect_due_at IS NOT NULL',
  );
  const parked = db.prepare(
    `${RECORD} WHERE r.sender_id = ? AND r.task_id = ? AND r.parked_until > 0 ORDER BY r.place LIMIT 1`,
  );
  const all = db.prepare('SELECT id FROM webhook_sender');
  const far = db.prepare(`${RECORD} WHERE r.sender_id = ? AND r.due_at > ? ORDER BY r.due_at DESC LIMIT ?`);
  const farther = db.prepare(`${RECORD} WHERE r.suspect_due_at > ? LIMIT ?`);
  const one = (row: unknown): RecordRow | undefined => (row ? recordOf(row as SqliteRow) : undefined);
  return {
    due: (now) => {
      const sender = behind(last, now) ?? behind(0, now);
      if (sender === undefined) return undefined;
      last = sender;
      return one(due.get(sender, now));
    },
    nextDue: () => {
      const at = (next.get() as SqliteRow | undefined)?.['due_at'];
      return at == null ? undefined : Number(at);
    },
    far: (after, most) =>
      (all.all() as SqliteRow[])
        .flatMap(({ id }) => far.all(Number(id), after, most) as SqliteRow[])
        .concat(farther.all(after, most) as SqliteRow[])
        .map(recordOf),
    dueSuspect: (now) => one(suspect.get(now)),
    nextSuspect: () => {
      const at = (sooner.get() as SqliteRow | undefined)?.['due_at'];
      return at == null ? undefined : Number(at);
    },
    parked: (sender, taskId) => one(parked.get(senders.senderId(sender), columnText(taskId))),
    page: pages(db, senders),
  };
}

function pages(db: SqliteHandle, senders: Senders): QueueRows['page'] {
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
