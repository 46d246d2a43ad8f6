import type { Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

type MarkRows = Pick<Rows, 'task' | 'saveTask' | 'notification' | 'saveNotification'>;

/**
 * Tasks (who holds one, and the newest status applied) and notification ids (which event brought one first).
 *
 *     find  sender, id, now → the row; an expired one is absent
 *     save  sender, id and the rest → inserted; or replaced, where it is known or has expired
 *
 * Read and written in the transaction of the record that they decide about: what was true for the decision is true
 * at the commit.
 */
export function markRows(db: SqliteHandle, senders: Senders): MarkRows {
  return { ...taskRows(db, senders), ...notificationRows(db, senders) };
}

function taskRows(db: SqliteHandle, senders: Senders): Pick<MarkRows, 'task' | 'saveTask'> {
  const find = db.prepare(
    'SELECT holder, mark, mark_terminal, expires_at FROM webhook_task WHERE sender_id = ? AND task_id = ? AND expires_at > ?',
  );
  const save = db.prepare(
    'INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at) VALUES (?, ?, ?, ?, ?, ?) ' +
      'ON CONFLICT DO UPDATE SET holder = excluded.holder, mark = excluded.mark, mark_terminal = excluded.mark_terminal, expires_at = excluded.expires_at',
  );
  return {
    task: (sender, id, now) => {
      const row = find.get(senders.senderId(sender), columnText(id), now) as SqliteRow | undefined;
      if (row === undefined) return undefined;
      const holder = nullableTextOf(row, 'holder');
      return {
        sender,
        id,
        holder: holder === null ? null : fromColumnText(holder),
        mark: nullableTextOf(row, 'mark'),
        markTerminal: Number(row['mark_terminal']) === 1,
        expiresAt: Number(row['expires_at']),
      };
    },
    saveTask: ({ sender, id, holder, mark, markTerminal, expiresAt }) => {
      const key = holder === null ? null : columnText(holder);
      save.run(senders.senderId(sender), columnText(id), key, mark, markTerminal ? 1 : 0, expiresAt);
    },
  };
}

function notificationRows(
  db: SqliteHandle,
  senders: Senders,
): Pick<MarkRows, 'notification' | 'saveNotification'> {
  const find = db.prepare(
    'SELECT record_key, expires_at FROM webhook_notification WHERE sender_id = ? AND notification_id = ? AND expires_at > ?',
  );
  const save = db.prepare(
    'INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at) VALUES (?, ?, ?, ?) ' +
      'ON CONFLICT DO UPDATE SET record_key = excluded.record_key, expires_at = excluded.expires_at',
  );
  return {
    notification: (sender, id, now) => {
      const row = find.get(senders.senderId(sender), columnText(id), now) as SqliteRow | undefined;
      if (row === undefined) return undefined;
      const key = fromColumnText(textOf(row, 'record_key'));
      return { sender, id, key, expiresAt: Number(row['expires_at']) };
    },
    saveNotification: ({ sender, id, key, expiresAt }) => {
      save.run(senders.senderId(sender), columnText(id), columnText(key), expiresAt);
    },
  };
}
