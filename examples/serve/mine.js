// A module as sink (`sink: ./mine.js`): it writes the media buys that sellers confirm into a table of SQLite.
import { mkdirSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { PermanentError } from 'proto-webhooks';

mkdirSync(new URL('data/', import.meta.url), { recursive: true });
const db = new DatabaseSync(new URL('data/mine.db', import.meta.url));
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 2000');
db.exec(
  'CREATE TABLE IF NOT EXISTS buys (event TEXT PRIMARY KEY, seller TEXT NOT NULL, media_buy TEXT NOT NULL)',
);
const insert = db.prepare('INSERT INTO buys VALUES (?, ?, ?) ON CONFLICT DO NOTHING');

/**
 * Handles one event. When it returns, the event is done. When it throws a `PermanentError`, the event is DEAD. Any other
 * error pauses the sink, and the event comes again, always under the same `id`: that is why it is the table's key.
 * `signal` fires at `timeoutMs`, and when the process stops. Pass it on to what can be ended: `fetch(url, { signal })`.
 */
export async function send(event, { id, signal, log }) {
  signal.throwIfAborted();
  if (event.kind !== 'task' || event.taskType !== 'create_media_buy' || event.status !== 'completed') return;
  const { media_buy_id: mediaBuy } = event.data ?? {};
  if (typeof mediaBuy !== 'string') throw new PermanentError('a media buy without media_buy_id');
  insert.run(id, event.sender, mediaBuy);
  log.info({ mediaBuy }, 'booked');
}

/** Called at the end of the process, and when SIGHUP has brought another configuration. */
export async function close() {
  db.close();
}
