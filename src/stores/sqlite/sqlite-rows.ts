// The rows that the rules read and write on SQLite, and the searches of workers, operators and registrations
// (admission.md §8.1, §9.2).
// Called by open.ts for each connection; the rules use them inside a transaction.
import type { InboxQuery, RegistrationRow } from '../store.ts';
import { isRegistration, PROCESSES, ROW_KINDS, unpacked } from '../optimistic/row-data.ts';
import { type TextRange, turnIn, turnRanges, turnText } from '../optimistic/commit-unit.ts';
import {
  type RegistrationSearch,
  type ListedRegistrations,
  inTurns,
  longestTurnMs,
} from '../rules/registration-rules.ts';
import type { QueueRows, RecordRow } from '../rules/rule-rows.ts';
import { FAR_WAIT_MS } from '../constants.ts';
import { columnText, fromColumnText } from '../text.ts';
import { type SqliteHandle, type SqliteRow, textOf, type SqliteValue } from './handle.ts';
import { type Scopes, scopesOf } from './scopes.ts';
import { tableOf } from './sqlite-table.ts';

type RegistrationSearches = Pick<
  RegistrationSearch,
  'dueRegistrations' | 'nextRegistration' | 'registrations'
>;

/**
 * Searches rows of registrations, sender by sender. A row is due if its `waits_for`, a text of its due time, is in one
 * of two ranges (`turnRanges`).
 *
 * The statements, with parameters → result:
 *
 *     senders  → all senders
 *     having   name, name, two ranges, limit → senders after the first name and up to the second (null: all) that have
 *              rows in a range, by name
 *     due      sender, range, limit → rows of the sender in the range, the earliest due time first
 *     next     range → the earliest due time in the range, of all senders
 *     listed   kind, sender, id, list, list, limit → rows of the sender after that id, by id; list null: of all lists
 */
function registrationRows(db: SqliteHandle, scopes: Scopes): RegistrationSearches {
  const within = 'scope = s.id AND waits_for >= ? AND waits_for <= ?';
  const senders = db.prepare('SELECT name FROM webhook_scope WHERE within = 0');
  const having = db.prepare(
    `SELECT s.id, s.name FROM webhook_scope s WHERE s.within = 0 AND s.name > ? AND s.name <= coalesce(?, s.name)
      AND (EXISTS (SELECT 1 FROM webhook_row WHERE ${within}) OR EXISTS (SELECT 1 FROM webhook_row WHERE ${within}))
      ORDER BY s.name LIMIT ?`,
  );
  const due = db.prepare(
    `SELECT name, data FROM webhook_row WHERE scope = ? AND waits_for >= ? AND waits_for <= ?
      ORDER BY waits_for, id LIMIT ?`,
  );
  const next = db.prepare(
    `SELECT min((SELECT waits_for FROM webhook_row WHERE ${within} ORDER BY waits_for LIMIT 1)) AS turn
      FROM webhook_scope s WHERE s.within = 0`,
  );
  const listed = db.prepare(
    `SELECT name, data FROM webhook_row WHERE kind = ? AND scope = ? AND name > ?
      AND (? IS NULL OR json_extract(data, '$.list') = ?) ORDER BY name LIMIT ?`,
  );
  const listedOf = (of: ListedRegistrations, sender: string, behind: string): readonly RegistrationRow[] => {
    const { kind, list = null, limit } = of;
    const values: SqliteValue[] = [kind, scopes.id({ sender }), columnText(behind), list, list, limit];
    return rowsOf(kind, sender, listed.all(...values));
  };
  return {
    dueRegistrations: (of, now) => {
      const { kind, max } = of;
      const ranges = turnRanges(kind, now, longestTurnMs(kind));
      const after = columnText(of.after);
      const found = having.all(after, null, ...ranges.flat(), max) as SqliteRow[];
      if (found.length < max) {
        found.push(...(having.all('', after, ...ranges.flat(), max - found.length) as SqliteRow[]));
      }
      // The more senders have due rows, the fewer rows are read of each. With `max` senders, one row of each is enough.
      const most = max + 1 - found.length;
      const bySender = found.map((row) => {
        const sender = fromColumnText(textOf(row, 'name'));
        const rowsIn = ([from, to]: TextRange): unknown[] => due.all(Number(row['id']), from, to, most);
        return [sender, rowsOf(kind, sender, ranges.flatMap(rowsIn))] as const;
      });
      return inTurns(new Map(bySender), of);
    },
    nextRegistration: (kind) => {
      const row = next.get(turnText(kind, 0), turnText(kind, Number.MAX_SAFE_INTEGER)) as SqliteRow;
      return row['turn'] == null ? undefined : turnIn(textOf(row, 'turn'));
    },
    registrations: (of) => {
      const { sender, after, limit } = of;
      const behind = (name: string): string => (name === after?.sender ? after.id : '');
      if (sender !== undefined) return listedOf(of, sender, behind(sender));
      const names = (senders.all() as SqliteRow[]).map((row) => fromColumnText(textOf(row, 'name')));
      const rows: RegistrationRow[] = [];
      for (const name of names.filter((one) => one >= (after?.sender ?? '')).sort()) {
        rows.push(...listedOf({ ...of, limit: limit - rows.length }, name, behind(name)));
        if (rows.length >= limit) break;
      }
      return rows;
    },
  };
}

function rowsOf(
  kind: RegistrationRow['kind'],
  sender: string,
  found: readonly unknown[],
): readonly RegistrationRow[] {
  return (found as SqliteRow[]).map(
    (row) =>
      unpacked({
        scope: { sender },
        kind,
        id: textOf(row, 'name'),
        data: textOf(row, 'data'),
      }) as RegistrationRow,
  );
}

const ROW = `SELECT r.id, r.name, r.data, s.name AS sender FROM webhook_row r JOIN webhook_scope s ON s.id = r.scope`;

type Searches = Pick<
  QueueRows,
  'due' | 'nextDue' | 'dueSuspect' | 'nextSuspect' | 'parked' | 'page' | 'counts'
>;

/**
 * The searches of workers and operators. Each uses an index of its own; none scans the table.
 *
 * The statements, with parameters → result. A row whose due time is later than `limit` was set before the clock was
 * set back, so it is due too:
 *
 *     turn     sender, now, limit → the next sender that has a row due by now, or later than the limit
 *     first    sender, from, to → the row of the sender that is due first between both times; of several the oldest
 *     next     → the earliest due time of all senders, past or ahead
 *     suspect  now, limit → the due suspect (event whose process died) with the fewest crashes; of several the oldest
 *     sooner   → the earliest due time of all suspects, past or ahead; suspects are few
 *     parked   sender, task → the oldest row that waits for the task
 *     list     sender, list, id, now, most → unexpired rows of the sender on the list after that id, oldest first
 *     counted  now → for each sender and list, the number of unexpired rows and the oldest row
 *     senders  → all senders; they are few, so a list of all merges their lists
 *
 * A worker's call runs in one transaction, so a due row stays due until the call leases it. Senders take turns by their
 * ids. Each process begins after the sender of the last row that it found.
 */
function dueRows(db: SqliteHandle, scopes: Scopes): Searches {
  // SQLite uses a partial index only if the statement repeats its condition.
  const due = 'due_at IS NOT NULL AND crashes IS NULL';
  const turn = db.prepare(
    `SELECT id FROM webhook_scope WHERE id > ? AND (
      EXISTS (SELECT 1 FROM webhook_row WHERE scope = webhook_scope.id AND ${due} AND due_at <= ?)
      OR EXISTS (SELECT 1 FROM webhook_row WHERE scope = webhook_scope.id AND ${due} AND due_at > ?)) ORDER BY id LIMIT 1`,
  );
  const first = db.prepare(
    `${ROW} WHERE r.scope = ? AND ${due} AND r.due_at > ? AND r.due_at <= ? ORDER BY r.due_at, r.id LIMIT 1`,
  );
  const next = db.prepare(
    `SELECT min((SELECT due_at FROM webhook_row WHERE scope = webhook_scope.id AND ${due}
      ORDER BY due_at LIMIT 1)) AS due_at FROM webhook_scope`,
  );
  const suspect = db.prepare(
    `${ROW} WHERE r.crashes IS NOT NULL AND (r.due_at <= ? OR r.due_at > ?) ORDER BY r.crashes, r.id LIMIT 1`,
  );
  const sooner = db.prepare('SELECT min(due_at) AS due_at FROM webhook_row WHERE crashes IS NOT NULL');
  const parked = db.prepare(`${ROW} WHERE r.scope = ? AND r.waits_for = ? ORDER BY r.id LIMIT 1`);
  const list = db.prepare(
    `${ROW} WHERE r.scope = ? AND r.list = ? AND r.id > ? AND (r.expires_at IS NULL OR r.expires_at > ?)
      ORDER BY r.id LIMIT ?`,
  );
  const counted = db.prepare(
    `SELECT g.list, g.count, r.name, r.data, s.name AS sender FROM (
      SELECT list, count(*) AS count, min(id) AS oldest FROM webhook_row
        WHERE list IS NOT NULL AND (expires_at IS NULL OR expires_at > ?) GROUP BY scope, list) g
      JOIN webhook_row r ON r.id = g.oldest JOIN webhook_scope s ON s.id = r.scope`,
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
      const far = now + FAR_WAIT_MS;
      const behind = (id: number): unknown => turn.get(id, now, far);
      const sender = (behind(last) ?? behind(0)) as SqliteRow | undefined;
      if (sender === undefined) return undefined;
      last = Number(sender['id']);
      return one(first.get(last, -1, now) ?? first.get(last, far, Number.MAX_SAFE_INTEGER));
    },
    nextDue: () => dueAt(next.get()),
    dueSuspect: (now) => one(suspect.get(now, now + FAR_WAIT_MS)),
    nextSuspect: () => dueAt(sooner.get()),
    parked: (sender, taskId) => one(parked.get(scopes.id({ sender }), columnText(taskId))),
    page: ({ state, sender, limit, after }, now) => {
      const ids = sender === undefined ? allSenders() : [scopes.id({ sender })];
      // One row more than requested is read of each sender, to find out if there is another page.
      const found = ids.flatMap(
        (id) => list.all(id, state, Number(after ?? 0), now, limit + 1) as SqliteRow[],
      );
      const behind = found.sort((a, b) => Number(a['id']) - Number(b['id']));
      const rows = behind.slice(0, limit);
      const end = rows.at(-1);
      const hasMore = behind.length > rows.length && end !== undefined;
      return { rows: rows.map(recordOf), ...(hasMore && { next: String(Number(end['id'])) }) };
    },
    counts: (now) =>
      (counted.all(now) as SqliteRow[]).map((row) => {
        const { sender, insertedAt } = recordOf(row);
        const state = textOf(row, 'list') as InboxQuery['state'];
        return { sender, state, count: Number(row['count']), oldestInsertedAt: insertedAt };
      }),
  };
}

function recordOf(row: SqliteRow): RecordRow {
  const scope = { sender: fromColumnText(textOf(row, 'sender')) };
  return unpacked({ scope, kind: 'record', id: textOf(row, 'name'), data: textOf(row, 'data') }) as RecordRow;
}

export type SqliteRows = QueueRows & RegistrationSearch & Pick<Scopes, 'begin' | 'save' | 'forget'>;

/**
 * The largest number of expired rows of one kind that one call of `accept` deletes; successive calls take the kinds in
 * turn. A call of `accept` adds at most one row of each kind.
 */
const PURGE_AN_ACCEPT = 16;

/** All kinds of rows but registrations. Expired registrations are deleted when another one of their kind is saved. */
const OF_EVENTS = ROW_KINDS.filter((kind) => !isRegistration(kind));

/** The kinds of rows that the cap on a sender's entries counts. */
const ENTRIES = ROW_KINDS.filter((kind) => kind !== 'nonce' && kind !== 'process');

/** Makes `Rows` over one connection. The schema must exist, because all statements are prepared here, once. */
export function sqliteRows(db: SqliteHandle): SqliteRows {
  const scopes = scopesOf(db);
  const table = tableOf(db, scopes);
  let turn = 0;
  return {
    ...dueRows(db, scopes),
    ...registrationRows(db, scopes),
    registration: (kind, sender, id, now) => table.find(kind, { sender }, id, now),
    saveRegistration: (row, now) => {
      table.purge(row.kind, now, PURGE_AN_ACCEPT);
      table.save(row.kind, row, row.id, row, true);
    },
    nonce: (of, now) => table.find('nonce', of, of.nonce, now),
    saveNonce: (row) => table.save('nonce', row, row.nonce, row, false),
    record: (sender, key, now) => table.find('record', { sender }, key, now),
    body: (sender, key) => table.body('record', { sender }, key),
    insertRecord: (row, body) => table.insert('record', row, row.key, row, body),
    updateRecord: (row) => {
      table.save('record', row, row.key, row, true);
      if (row.bodyBytes === 0) table.dropBody('record', row, row.key);
    },
    task: (sender, id, now) => table.find('task', { sender }, id, now),
    // A task with a mark (the time of its newest status) was saved before. So an update is tried before an insert.
    saveTask: (row) => table.save('task', row, row.id, { ...row, waiting: false }, row.mark !== null),
    notification: (sender, id, now) => table.find('notification', { sender }, id, now),
    saveNotification: (row) => table.save('notification', row, row.id, row, false),
    isProcessAlive: (id, now) => table.find('process', PROCESSES, id, now) !== undefined,
    saveProcess: (row, now) => {
      table.purge('process', now, PURGE_AN_ACCEPT);
      table.save('process', PROCESSES, row.id, row, true);
    },
    usage: scopes.usage,
    purge: (now) => {
      turn = (turn + 1) % OF_EVENTS.length;
      table.purge(OF_EVENTS[turn] ?? 'nonce', now, PURGE_AN_ACCEPT);
    },
    purgeSender: (sender, now, atLeast) => {
      for (const kind of ENTRIES) table.purge(kind, now, atLeast, { sender });
    },
    purgeNonces: (now, atLeast, of) => {
      if (!of || of.keyid !== undefined) table.purge('nonce', now, atLeast, of);
      else for (const scope of scopes.keyids(of.sender)) table.purge('nonce', now, atLeast, scope);
    },
    begin: scopes.begin,
    save: scopes.save,
    forget: scopes.forget,
  };
}
