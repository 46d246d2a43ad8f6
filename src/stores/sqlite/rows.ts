import type { QueueRows } from '../rules/rows.ts';
import { bodiesOf } from './bodies.ts';
import { dueRows } from './due.ts';
import type { SqliteHandle } from './handle.ts';
import { markRows } from './marks.ts';
import { nonceRows } from './nonces.ts';
import { processRows } from './processes.ts';
import { purgeRows } from './purge.ts';
import { recordRows } from './records.ts';
import { sendersOf } from './senders.ts';

export interface SqliteRows extends QueueRows {
  /** A transaction begins: what was counted in the one before may have changed. */
  begin(): void;
  /** Before its COMMIT: what was counted in it. */
  save(): void;
  /** After a rollback. */
  forget(): void;
}

/** `Rows` over one connection. Every statement is prepared here, once; the schema must exist. */
export function sqliteRows(db: SqliteHandle): SqliteRows {
  const senders = sendersOf(db);
  const bodies = bodiesOf(db, senders);
  return {
    ...nonceRows(db, senders),
    ...recordRows(db, senders, bodies),
    ...dueRows(db, senders),
    ...markRows(db, senders),
    ...processRows(db),
    ...purgeRows(db, senders, bodies),
    usage: senders.usage,
    begin: () => senders.begin(),
    save: () => senders.save(),
    forget: () => senders.forget(),
  };
}
