import type { StoreIdentity } from '../contract.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';
import { fileOf } from './place.ts';

/**
 * The store's identity, made where it has none: in one transaction with its tables. Of no version: older processes know
 * nothing of it, and newer ones find it.
 * @param isMade whether this transaction made the store; else it is one that had none yet.
 * @returns what says it, and once that it is new.
 */
export function identify(db: SqliteHandle, isMade: boolean): () => StoreIdentity {
  db.exec('CREATE TABLE IF NOT EXISTS webhook_identity (id TEXT NOT NULL) STRICT');
  const find = db.prepare('SELECT id FROM webhook_identity');
  let row = find.get() as SqliteRow | undefined;
  if (!row) {
    db.prepare('INSERT INTO webhook_identity (id) VALUES (?)').run(globalThis.crypto.randomUUID());
    row = find.get() as SqliteRow;
  }
  const id = textOf(row, 'id');
  let isNew = isMade && fileOf(db) !== '';
  return () => {
    const identity = { id, isNew };
    isNew = false;
    return identity;
  };
}
