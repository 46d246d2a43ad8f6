import type { Rows } from '../rules/rows.ts';
import type { Bodies } from './bodies.ts';
import type { SqliteHandle, SqliteRow, SqliteStatement } from './handle.ts';
import type { Senders } from './senders.ts';

/** Rows that one accept deletes at most, of one table; each table has its turn every fourth accept. */
const PURGE_AN_ACCEPT = 16;

interface Expiring {
  readonly table: string;
  /** Identifies a row within the table. */
  readonly id: string;
  /** Whose counts it is in. */
  readonly owner: string;
  /** What is told of a row that is deleted, beside its owner. */
  readonly also?: string;
}

/** An accept adds at most one row to each; its turn takes four times as many. */
const NONCES: Expiring = { table: 'webhook_nonce', id: 'keyid_id, nonce', owner: 'keyid_id' };
const ENTRIES: readonly Expiring[] = [
  { table: 'webhook_record', id: 'sender_id, key', owner: 'sender_id', also: 'place' },
  { table: 'webhook_task', id: 'sender_id, task_id', owner: 'sender_id' },
  { table: 'webhook_notification', id: 'sender_id, notification_id', owner: 'sender_id' },
];

/** A row that is gone: taken off the counts of its owner. */
type Gone = (row: SqliteRow) => void;

interface Purges {
  /** Of any owner, at most `most`, where there is anything to do: mostly there is not. */
  readonly any: (now: number, most: number) => void;
  /** Of one owner only. */
  readonly owned: (now: number, owner: number, most: number) => void;
}

/**
 * Deletes expired rows, earliest first, along the expiry index.
 *
 *     due    now → a row where there is anything to do
 *     any    now, at most → whose rows are gone
 *     owned  now, owner, at most → those of one owner only (`+`: found in the expiry index, not among all of the owner's rows)
 */
function purges(db: SqliteHandle, { table, id, owner, also }: Expiring, gone: Gone): Purges {
  const told = also === undefined ? owner : `${owner}, ${also}`;
  const statement = (condition: string): SqliteStatement =>
    db.prepare(
      `DELETE FROM ${table} WHERE (${id}) IN (SELECT ${id} FROM ${table} WHERE expires_at <= ? ${condition} ORDER BY expires_at LIMIT ?) RETURNING ${told}`,
    );
  const due = db.prepare(`SELECT 1 FROM ${table} WHERE expires_at <= ? LIMIT 1`);
  const any = statement('');
  const owned = statement(`AND +${owner} = ?`);
  return {
    any: (now, most) => {
      if (due.get(now) !== undefined) for (const row of any.all(now, most)) gone(row as SqliteRow);
    },
    owned: (now, of, most) => {
      for (const row of owned.all(now, of, most)) gone(row as SqliteRow);
    },
  };
}

type PurgeRows = Pick<Rows, 'purge' | 'purgeSender' | 'purgeNonces'>;

export function purgeRows(db: SqliteHandle, senders: Senders, bodies: Bodies): PurgeRows {
  const nonces = purges(db, NONCES, (row) => senders.countNonces(Number(row['keyid_id']), -1));
  const entries = ENTRIES.map((of) =>
    purges(db, of, (row) => {
      const senderId = Number(row['sender_id']);
      senders.count(senderId, { entries: -1 });
      bodies.drop(senderId, Number(row['place'] ?? 0));
    }),
  );
  const turns = [nonces, ...entries];
  let turn = 0;
  return {
    purge: (now) => {
      (turns[turn] ?? nonces).any(now, PURGE_AN_ACCEPT);
      turn = (turn + 1) % turns.length;
    },
    purgeSender: (sender, now, atLeast) => {
      const id = senders.senderId(sender);
      for (const { owned } of entries) owned(now, id, atLeast);
    },
    purgeNonces: (now, atLeast, of) => {
      if (!of) nonces.any(now, atLeast);
      else if (of.keyid !== undefined) nonces.owned(now, senders.keyidId(of.sender, of.keyid), atLeast);
      else for (const id of senders.keyidsOf(senders.senderId(of.sender))) nonces.owned(now, id, atLeast);
    },
  };
}
