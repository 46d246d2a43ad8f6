import type { Rows } from '../kernel/rows.ts';
import { dueRows } from './due.ts';
import type { SqliteHandle } from './handle.ts';
import { markRows } from './marks.ts';
import { nonceRows } from './nonces.ts';
import { purgeRows } from './purge.ts';
import { recordRows } from './records.ts';
import { sendersOf } from './senders.ts';

export interface SqliteRows extends Rows {
  /** After a rollback. */
  forget(): void;
}

/** `Rows` over one connection. Every statement is prepared here, once; the schema must exist. */
export function sqliteRows(db: SqliteHandle): SqliteRows {
  const senders = sendersOf(db);
  return {
    ...nonceRows(db, senders),
    ...recordRows(db, senders),
    ...dueRows(db, senders),
    ...markRows(db, senders),
    ...purgeRows(db, senders),
    usage: (sender, keyid) => senders.usage(sender, keyid),
    forget: () => senders.forget(),
  };
}
