import type { FirstTerminal, Rows } from '../rules/rows.ts';
import type { SqliteHandle, SqliteRow, SqliteValue } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

type MarkRows = Pick<Rows, 'task' | 'saveTask' | 'notification' | 'saveNotification'>;

/**
 * Tasks (who holds one, and the newest status applied) and notification ids (which event brought one first).
 *
 *     find     sender, id, now → the row; an expired one is absent
 *     add      sender, id and the rest → 1 row where it is new
 *     replace  the same, where it is known or has expired
 *
 * Read and written in the transaction of the record that they decide about: what was true for the decision is true
 * at the commit.
 */
export function markRows(db: SqliteHandle, senders: Senders): MarkRows {
  return { ...taskRows(db, senders), ...notificationRows(db, senders) };
}

type Save = (known: boolean, sender: string, id: string, rest: readonly SqliteValue[]) => void;

/** `known` only says what to try first. */
function saver(
  db: SqliteHandle,
  senders: Senders,
  table: string,
  columns: { readonly id: string; readonly rest: readonly string[] },
): Save {
  const { id: name, rest: names } = columns;
  const marks = [...names, 'sender_id', name].map(() => '?').join(', ');
  const add = db.prepare(
    `INSERT INTO ${table} (${names.join(', ')}, sender_id, ${name}) VALUES (${marks}) ON CONFLICT DO NOTHING`,
  );
  const changes = names.map((column) => `${column} = ?`).join(', ');
  const replace = db.prepare(`UPDATE ${table} SET ${changes} WHERE sender_id = ? AND ${name} = ?`);
  return (known, sender, id, rest) => {
    const senderId = senders.senderId(sender);
    const values = [...rest, senderId, columnText(id)];
    if (known && Number(replace.run(...values).changes) > 0) return;
    if (Number(add.run(...values).changes) > 0) senders.count(senderId, { entries: 1 });
    else replace.run(...values);
  };
}

function taskRows(db: SqliteHandle, senders: Senders): Pick<MarkRows, 'task' | 'saveTask'> {
  const find = db.prepare(
    'SELECT holder, mark, mark_terminal, first_terminal, expires_at FROM webhook_task WHERE sender_id = ? AND task_id = ? AND expires_at > ?',
  );
  const save = saver(db, senders, 'webhook_task', {
    id: 'task_id',
    rest: ['holder', 'mark', 'mark_terminal', 'first_terminal', 'expires_at'],
  });
  return {
    task: (sender, id, now) => {
      const row = find.get(senders.senderId(sender), columnText(id), now) as SqliteRow | undefined;
      if (row === undefined) return undefined;
      const holder = nullableTextOf(row, 'holder');
      const terminal = nullableTextOf(row, 'first_terminal');
      return {
        sender,
        id,
        holder: holder === null ? null : fromColumnText(holder),
        mark: nullableTextOf(row, 'mark'),
        markTerminal: Number(row['mark_terminal']) === 1,
        terminal: terminal === null ? null : (JSON.parse(terminal) as FirstTerminal),
        expiresAt: Number(row['expires_at']),
      };
    },
    saveTask: ({ sender, id, holder, mark, markTerminal, terminal, expiresAt }) => {
      const key = holder === null ? null : columnText(holder);
      // One with a mark was there before.
      const first = terminal && JSON.stringify(terminal);
      save(mark !== null, sender, id, [key, mark, markTerminal ? 1 : 0, first, expiresAt]);
    },
  };
}

function notificationRows(
  db: SqliteHandle,
  senders: Senders,
): Pick<MarkRows, 'notification' | 'saveNotification'> {
  const find = db.prepare(
    'SELECT record_key, instant, expires_at FROM webhook_notification WHERE sender_id = ? AND notification_id = ? AND expires_at > ?',
  );
  const save = saver(db, senders, 'webhook_notification', {
    id: 'notification_id',
    rest: ['record_key', 'instant', 'expires_at'],
  });
  return {
    notification: (sender, id, now) => {
      const row = find.get(senders.senderId(sender), columnText(id), now) as SqliteRow | undefined;
      if (row === undefined) return undefined;
      const key = fromColumnText(textOf(row, 'record_key'));
      return {
        sender,
        id,
        key,
        instant: nullableTextOf(row, 'instant'),
        expiresAt: Number(row['expires_at']),
      };
    },
    saveNotification: ({ sender, id, key, instant, expiresAt }) => {
      save(false, sender, id, [columnText(key), instant, expiresAt]);
    },
  };
}
