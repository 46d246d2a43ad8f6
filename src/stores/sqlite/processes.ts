import type { Rows } from '../rules/rows.ts';
import type { SqliteHandle } from './handle.ts';
import { columnText } from './text.ts';

/**
 * Processes, by when they are taken for dead. Few: each save goes through all of them.
 *
 *     find    id, now → a row where it is alive
 *     forget  now → those that are over are gone
 *     save    id, until when → inserted or replaced
 */
export function processRows(db: SqliteHandle): Pick<Rows, 'isProcessAlive' | 'saveProcess'> {
  const find = db.prepare('SELECT 1 FROM webhook_process WHERE id = ? AND expires_at > ?');
  const forget = db.prepare('DELETE FROM webhook_process WHERE expires_at <= ?');
  const save = db.prepare(
    'INSERT INTO webhook_process (id, expires_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at',
  );
  return {
    isProcessAlive: (id, now) => find.get(columnText(id), now) !== undefined,
    saveProcess: ({ id, expiresAt }, now) => {
      forget.run(now);
      save.run(columnText(id), expiresAt);
    },
  };
}
