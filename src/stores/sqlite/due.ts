import { unpacked } from '../driver/row-data.ts';
import type { QueueRows, RecordRow } from '../rules/rows.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';
import type { Scopes } from './scopes.ts';

const ROW = `SELECT r.id, r.name, r.data, s.name AS sender FROM webhook_row r JOIN webhook_scope s ON s.id = r.scope`;

type Searches = Pick<QueueRows, 'due' | 'nextDue' | 'far' | 'dueSuspect' | 'nextSuspect' | 'parked' | 'page'>;

/**
 * What workers and operators look for, each along an index of its own; none scans.
 *
 *     turn     sender, now → the sender behind it that has something due
 *     first    sender → its row due earliest, of those the oldest
 *     next     → when the earliest of all is due, or was
 *     far      sender, instant, limit → its rows due later than that, the latest first
 *     farther  instant, limit → suspects due later than that
 *     suspect  now → of the suspects that are due the one with the fewest crashes, of those the oldest, whoever sent them
 *     sooner   → when the earliest suspect is due, or was; suspects are few
 *     parked   sender, task → the oldest row that waits for the task
 *     list     sender, list, id, now, limit → its unexpired rows on the list behind that one, oldest first
 *     senders  → all senders; few: a list of all goes through them and merges
 *
 * A worker's call runs in one transaction: what it found due is due until it is leased. Senders take turns by their ids,
 * in each process from the one behind the last that it found something of.
 */
export function dueRows(db: SqliteHandle, scopes: Scopes): Searches {
  // A partial index is used only where the statement has its condition.
  const due = 'due_at IS NOT NULL AND crashes IS NULL';
  const turn = db.prepare(
    `SELECT id FROM webhook_scope WHERE id > ? AND EXISTS (
      SELECT 1 FROM webhook_row WHERE scope = webhook_scope.id AND ${due} AND due_at <= ?) ORDER BY id LIMIT 1`,
  );
  const first = db.prepare(`${ROW} WHERE r.scope = ? AND ${due} ORDER BY r.due_at, r.id LIMIT 1`);
  const next = db.prepare(
    `SELECT min((SELECT due_at FROM webhook_row WHERE scope = webhook_scope.id AND ${due}
      ORDER BY due_at LIMIT 1)) AS due_at FROM webhook_scope`,
  );
  const far = db.prepare(
    `${ROW} WHERE r.scope = ? AND ${due} AND r.due_at > ? ORDER BY r.due_at DESC LIMIT ?`,
  );
  const suspect = db.prepare(
    `${ROW} WHERE r.crashes IS NOT NULL AND r.due_at <= ? ORDER BY r.crashes, r.id LIMIT 1`,
  );
  const sooner = db.prepare('SELECT min(due_at) AS due_at FROM webhook_row WHERE crashes IS NOT NULL');
  const farther = db.prepare(`${ROW} WHERE r.crashes IS NOT NULL AND r.due_at > ? LIMIT ?`);
  const parked = db.prepare(`${ROW} WHERE r.scope = ? AND r.waits_for = ? ORDER BY r.id LIMIT 1`);
  const list = db.prepare(
    `${ROW} WHERE r.scope = ? AND r.list = ? AND r.id > ? AND (r.expires_at IS NULL OR r.expires_at > ?)
      ORDER BY r.id LIMIT ?`,
  );
  const senders = db.prepare('SELECT id FROM webhook_scope WHERE within = 0');
  const allSenders = (): number[] => (senders.all() as SqliteRow[]).map(({ id }) => Number(id));
  const one = (row: unknown): RecordRow | undefined => (row ? recordOf(row as SqliteRow) : undefined);
  const dueAt = (row: unknown): number | undefined => {
    const at = (row as SqliteRow | undefined)?.['due_at'];
    return at == null ? undefined : Number(at);
  };
  let last = 0;
  return {
    due: (now) => {
      const sender = (turn.get(last, now) ?? turn.get(0, now)) as SqliteRow | undefined;
      if (sender === undefined) return undefined;
      last = Number(sender['id']);
      return one(first.get(last));
    },
    nextDue: () => dueAt(next.get()),
    far: (after, most) =>
      allSenders()
        .flatMap((id) => far.all(id, after, most) as SqliteRow[])
        .concat(farther.all(after, most) as SqliteRow[])
        .map(recordOf),
    dueSuspect: (now) => one(suspect.get(now)),
    nextSuspect: () => dueAt(sooner.get()),
    parked: (sender, taskId) => one(parked.get(scopes.id({ sender }), columnText(taskId))),
    page: ({ state, sender, limit, after }, now) => {
      const ids = sender === undefined ? allSenders() : [scopes.id({ sender })];
      // One more than asked for, of each: whether there is another page.
      const found = ids.flatMap(
        (id) => list.all(id, state, Number(after ?? 0), now, limit + 1) as SqliteRow[],
      );
      const behind = found.sort((a, b) => Number(a['id']) - Number(b['id']));
      const rows = behind.slice(0, limit);
      const end = rows.at(-1);
      const more = behind.length > rows.length && end !== undefined;
      return { rows: rows.map(recordOf), ...(more && { next: String(Number(end['id'])) }) };
    },
  };
}

function recordOf(row: SqliteRow): RecordRow {
  const scope = { sender: fromColumnText(textOf(row, 'sender')) };
  return unpacked({ scope, kind: 'record', id: textOf(row, 'name'), data: textOf(row, 'data') }) as RecordRow;
}
