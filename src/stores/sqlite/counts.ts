import type { SqliteHandle, SqliteRow } from './handle.ts';

/** What is counted of one owner: a sender, a key id, or all. */
export interface Count {
  /** Records, tasks and notification ids. */
  readonly entries: number;
  /** Bytes of the bodies that are kept. */
  readonly bytes: number;
  readonly nonces: number;
}

/**
 * The counts, as one transaction sees and changes them. Read once a transaction and written once, at its end: a
 * transaction holds the write lock from its beginning, so that nobody else changes what was read; and 64 accepts of a
 * sender change one row once instead of some 300 times.
 *
 *     find  owner → its counts
 *     save  owner, counts → inserted or replaced
 */
export interface Counts {
  /** A transaction begins, or was undone: what was read and changed in the one before says nothing. */
  begin(): void;
  of(owner: number): Count;
  add(owner: number, change: Partial<Count>): void;
  /** Before the COMMIT: writes what has changed. */
  save(): void;
}

interface Kept extends Count {
  readonly changed: boolean;
}

/** Owners: the rows of senders and key ids, each counted from 1, share one table and so one page. */
export const ALL = 0;
export const ofSender = (id: number): number => 2 * id;
export const ofKeyid = (id: number): number => 2 * id + 1;

export function countsOf(db: SqliteHandle): Counts {
  const find = db.prepare('SELECT entries, bytes, nonces FROM webhook_count WHERE owner = ?');
  const save = db.prepare(
    'INSERT INTO webhook_count (owner, entries, bytes, nonces) VALUES (?, ?, ?, ?) ' +
      'ON CONFLICT DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes, nonces = excluded.nonces',
  );
  const kept = new Map<number, Kept>();
  const keptOf = (owner: number): Kept => {
    const known = kept.get(owner);
    if (known) return known;
    const row = find.get(owner) as SqliteRow | undefined;
    const number = (name: keyof Count): number => Number(row?.[name] ?? 0);
    const read = {
      entries: number('entries'),
      bytes: number('bytes'),
      nonces: number('nonces'),
      changed: false,
    };
    kept.set(owner, read);
    return read;
  };
  return {
    begin: () => kept.clear(),
    of: keptOf,
    add: (owner, { entries = 0, bytes = 0, nonces = 0 }) => {
      const was = keptOf(owner);
      kept.set(owner, {
        entries: was.entries + entries,
        bytes: was.bytes + bytes,
        nonces: was.nonces + nonces,
        changed: true,
      });
    },
    save: () => {
      for (const [owner, { entries, bytes, nonces, changed }] of kept) {
        if (changed) save.run(owner, entries, bytes, nonces);
      }
    },
  };
}
