import type { Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteStatement } from './handle.ts';
import type { Senders } from './senders.ts';

/** Rows that one accept deletes at most, of one table; each table has its turn every fourth accept. */
const PURGE_AN_ACCEPT = 16;

interface Expiring {
  readonly table: string;
  /** Identifies a row within the table. */
  readonly id: string;
  /** Whose counts it is in. */
  readonly owner: string;
}

/** An accept adds at most one row to each; its turn takes four times as many. */
const NONCES: Expiring = { table: 'webhook_nonce', id: 'keyid_id, nonce', owner: 'keyid_id' };
const ENTRIES: readonly Expiring[] = [
  { table: 'webhook_record', id: 'id', owner: 'sender_id' },
  { table: 'webhook_task', id: 'sender_id, task_id', owner: 'sender_id' },
  { table: 'webhook_notification', id: 'sender_id, notification_id', owner: 'sender_id' },
];

interface Purges {
  readonly due: SqliteStatement;
  readonly any: SqliteStatement;
  readonly owned: SqliteStatement;
}

/**
 * Deletes expired rows, earliest first, along the expiry index; triggers take them off the counts.
 *
 *     due    now → a row where there is anything to do: mostly there is not
 *     any    now, at most
 *     owned  now, owner, at most → those of one owner only (`+`: found in the expiry index, not among all of the owner's rows)
 */
function purges(db: SqliteHandle, { table, id, owner }: Expiring): Purges {
  const statement = (condition: string): SqliteStatement =>
    db.prepare(
      `DELETE FROM ${table} WHERE (${id}) IN (SELECT ${id} FROM ${table} WHERE expires_at <= ? ${condition} ORDER BY expires_at LIMIT ?)`,
    );
  const due = db.prepare(`SELECT 1 FROM ${table} WHERE expires_at <= ? LIMIT 1`);
  return { due, any: statement(''), owned: statement(`AND +${owner} = ?`) };
}

type PurgeRows = Pick<Rows, 'purge' | 'purgeSender' | 'purgeNonces'>;

export function purgeRows(db: SqliteHandle, senders: Senders): PurgeRows {
  const nonces = purges(db, NONCES);
  const entries = ENTRIES.map((of) => purges(db, of));
  const turns = [nonces, ...entries];
  let turn = 0;
  return {
    purge: (now) => {
      const { due, any } = turns[turn] ?? nonces;
      if (due.get(now) !== undefined) any.run(now, PURGE_AN_ACCEPT);
      turn = (turn + 1) % turns.length;
    },
    purgeSender: (sender, now, atLeast) => {
      const id = senders.senderId(sender);
      for (const { owned } of entries) owned.run(now, id, atLeast);
    },
    purgeNonces: (now, atLeast, of) => {
      if (of) nonces.owned.run(now, senders.keyidId(of.sender, of.keyid), atLeast);
      else nonces.any.run(now, atLeast);
    },
  };
}
