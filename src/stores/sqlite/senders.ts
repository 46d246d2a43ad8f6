import type { Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { columnText } from './text.ts';

/**
 * Senders and key ids by name, and the counts that triggers keep on them.
 *
 *     find   url, or sender and key id → id; added where it is new. Few, and never deleted
 *     usage  key id, sender → entries, pending bytes, nonces, all nonces: four counts in one row
 */
export interface Senders extends Pick<Rows, 'usage'> {
  senderId(url: string): number;
  keyidId(url: string, keyid: string): number;
  /** After a rollback: ids found since may not exist. */
  forget(): void;
}

const USAGE = `
SELECT s.entries, s.pending_bytes,
  coalesce((SELECT k.nonces FROM webhook_keyid k WHERE k.sender_id = s.id AND k.keyid = ?), 0) AS nonces,
  (SELECT t.nonces FROM webhook_total t) AS all_nonces
FROM webhook_sender s WHERE s.id = ?`;

type Find = (...values: (number | string)[]) => number;

function finder(db: SqliteHandle, table: string, columns: readonly string[]): Find {
  const condition = columns.map((column) => `${column} = ?`).join(' AND ');
  const marks = columns.map(() => '?').join(', ');
  const find = db.prepare(`SELECT id FROM ${table} WHERE ${condition}`);
  const add = db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks})`);
  return (...values) => {
    let row = find.get(...values) as SqliteRow | undefined;
    if (row === undefined) {
      add.run(...values);
      row = find.get(...values) as SqliteRow;
    }
    return Number(row['id']);
  };
}

/** Ids never change, so each name is looked up once a handle. */
function idsOf(db: SqliteHandle): Omit<Senders, 'usage'> {
  const findSender = finder(db, 'webhook_sender', ['url']);
  const findKeyid = finder(db, 'webhook_keyid', ['sender_id', 'keyid']);
  const ids = new Map<string, number>();
  const once = (name: string, find: () => number): number => {
    const known = ids.get(name);
    if (known !== undefined) return known;
    const id = find();
    ids.set(name, id);
    return id;
  };
  const senderId = (url: string): number => once(`sender ${url}`, () => findSender(columnText(url)));
  return {
    senderId,
    keyidId: (url, keyid) => {
      const sender = senderId(url);
      return once(`${sender} ${keyid}`, () => findKeyid(sender, columnText(keyid)));
    },
    forget: () => ids.clear(),
  };
}

export function sendersOf(db: SqliteHandle): Senders {
  const ids = idsOf(db);
  const usage = db.prepare(USAGE);
  return {
    ...ids,
    usage: (sender, keyid) => {
      // An empty key id has no nonces: it never names a key.
      const row = usage.get(columnText(keyid ?? ''), ids.senderId(sender)) as SqliteRow;
      return {
        entries: Number(row['entries']),
        pendingBytes: Number(row['pending_bytes']),
        nonces: Number(row['nonces']),
        allNonces: Number(row['all_nonces']),
      };
    },
  };
}
