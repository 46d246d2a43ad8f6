import type { Rows } from '../rules/rows.ts';
import type { Count, Counts } from './counts.ts';
import { ALL, countsOf, ofKeyid, ofSender } from './counts.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { columnText } from './text.ts';

/**
 * Senders and key ids by name, and what is counted of them.
 *
 *     find   url, or sender and key id → id; added where it is new. Few, and never deleted
 *     usage  sender, key id → entries, pending bytes, nonces, those of all its key ids, all nonces
 */
export interface Senders extends Pick<Rows, 'usage'>, Pick<Counts, 'begin' | 'save'> {
  senderId(url: string): number;
  keyidId(url: string, keyid: string): number;
  /** More or fewer of a sender's entries, or bytes of bodies. */
  count(senderId: number, change: Partial<Omit<Count, 'nonces'>>): void;
  /** More or fewer nonces of a key id. */
  countNonces(keyidId: number, nonces: number): void;
  /** Of a sender that has any. */
  keyidsOf(senderId: number): readonly number[];
  /** After a rollback: ids found since may not exist, and counts are as they were. */
  forget(): void;
}

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
function idsOf(db: SqliteHandle): Pick<Senders, 'senderId' | 'keyidId' | 'forget'> {
  const findSender = finder(db, 'webhook_sender', ['url']);
  const findKeyid = finder(db, 'webhook_keyid', ['sender_id', 'keyid']);
  const senders = new Map<string, number>();
  const keyids = new Map<number, Map<string, number>>();
  const senderId = (url: string): number => {
    const known = senders.get(url);
    if (known !== undefined) return known;
    const id = findSender(columnText(url));
    senders.set(url, id);
    return id;
  };
  return {
    senderId,
    keyidId: (url, keyid) => {
      const sender = senderId(url);
      const known = keyids.get(sender)?.get(keyid);
      if (known !== undefined) return known;
      const id = findKeyid(sender, columnText(keyid));
      keyids.set(sender, (keyids.get(sender) ?? new Map<string, number>()).set(keyid, id));
      return id;
    },
    forget: () => {
      senders.clear();
      keyids.clear();
    },
  };
}

export function sendersOf(db: SqliteHandle): Senders {
  const ids = idsOf(db);
  const counts = countsOf(db);
  const all = db.prepare('SELECT id FROM webhook_keyid WHERE sender_id = ?');
  const owner = db.prepare('SELECT sender_id FROM webhook_keyid WHERE id = ?');
  const owners = new Map<number, number>();
  const ownerOf = (keyidId: number): number => {
    const known = owners.get(keyidId);
    if (known !== undefined) return known;
    const found = Number((owner.get(keyidId) as SqliteRow)['sender_id']);
    owners.set(keyidId, found);
    return found;
  };
  return {
    ...ids,
    forget: () => {
      ids.forget();
      owners.clear();
      counts.begin();
    },
    begin: () => counts.begin(),
    save: () => counts.save(),
    count: (senderId, change) => counts.add(ofSender(senderId), change),
    keyidsOf: (senderId) => (all.all(senderId) as SqliteRow[]).map((row) => Number(row['id'])),
    countNonces: (keyidId, nonces) => {
      counts.add(ofKeyid(keyidId), { nonces });
      counts.add(ofSender(ownerOf(keyidId)), { nonces });
      counts.add(ALL, { nonces });
    },
    usage: (sender, keyid) => {
      const { entries, bytes, nonces: senderNonces } = counts.of(ofSender(ids.senderId(sender)));
      const { nonces } = keyid === undefined ? NONE : counts.of(ofKeyid(ids.keyidId(sender, keyid)));
      return { entries, pendingBytes: bytes, nonces, senderNonces, allNonces: counts.of(ALL).nonces };
    },
  };
}

const NONE = { nonces: 0 };
