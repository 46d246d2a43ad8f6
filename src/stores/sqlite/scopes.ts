// Ids of senders and key ids in SQLite, and the counts of each (admission.md §6.6, §6.7).
// Called by sqlite-rows.ts and sqlite-table.ts.
import type { Scope } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';

/** The counts of a scope. `nonces`: for a sender, those of all its key ids; for scope 0, those of all senders. */
export interface Count {
  readonly rows: number;
  /** The bytes of the bodies that are kept. */
  readonly bytes: number;
  readonly nonces: number;
}

/**
 * Senders and key ids by name, with the counts of each. Counts are read once a transaction, and written once at its
 * end. A transaction holds the write lock from its beginning, so nobody else changes them meanwhile. So 64 accepts of a
 * sender change one row once, instead of some 300 times.
 *
 * The statements and their parameters:
 *
 *     find  the scope that it is within, name → id
 *     add   the same → a row. Few, and never deleted
 *     look  id → the scope that it is within, and its counts
 *     named id → names of the scopes within it
 *     save  counts, id
 */
export interface Scopes {
  /**
   * Returns the id of a scope. A new scope is added. Each is looked up once for a handle, because ids never change.
   */
  readonly id: (scope: Scope) => number;
  /** Returns the key ids of a sender. */
  readonly keyids: (sender: string) => readonly Scope[];
  /** Adds rows and bytes to a scope's counts; negative numbers subtract. */
  readonly add: (id: number, rows: number, bytes: number) => void;
  readonly usage: (sender: string, keyid: string | undefined) => Usage;
  /** Begins a transaction: other processes may have changed the counts since the last one. */
  readonly begin: () => void;
  /** Writes the counts of a transaction, before its COMMIT. */
  readonly save: () => void;
  /** Forgets all counts and new ids after a rollback: new ids may not exist, and counts are as they were before. */
  readonly forget: () => void;
}

/** The scope of processes, which also has the counts over all senders. */
const ROOT = 0;

interface Kept extends Count {
  readonly within: number;
  readonly isChanged: boolean;
}

/** The id of a scope, and the ids of the scopes within it. */
interface Known {
  readonly id: number;
  readonly within: Map<string, Known>;
}

export function scopesOf(db: SqliteHandle): Scopes {
  const find = db.prepare('SELECT id FROM webhook_scope WHERE within = ? AND name = ?');
  const add = db.prepare('INSERT INTO webhook_scope (within, name) VALUES (?, ?)');
  const look = db.prepare('SELECT within, rows, bytes, nonces FROM webhook_scope WHERE id = ?');
  const named = db.prepare('SELECT name FROM webhook_scope WHERE within = ?');
  const save = db.prepare('UPDATE webhook_scope SET rows = ?, bytes = ?, nonces = ? WHERE id = ?');
  const root: Known = { id: ROOT, within: new Map() };
  const counts = new Map<number, Kept>();

  const known = ({ id, within }: Known, name: string): Known => {
    let found = within.get(name);
    if (found) return found;
    const text = columnText(name);
    let row = find.get(id, text) as SqliteRow | undefined;
    if (!row) {
      add.run(id, text);
      row = find.get(id, text) as SqliteRow;
    }
    within.set(name, (found = { id: Number(row['id']), within: new Map() }));
    return found;
  };
  const idOf = ({ sender, keyid }: Scope): number => {
    if (sender === '') return ROOT;
    const of = known(root, sender);
    return keyid === undefined ? of.id : known(of, keyid).id;
  };
  const countOf = (id: number): Kept => {
    let kept = counts.get(id);
    if (kept) return kept;
    const row = look.get(id) as SqliteRow;
    const [within, rows, bytes, nonces] = ['within', 'rows', 'bytes', 'nonces'].map((name) =>
      Number(row[name]),
    );
    kept = { within, rows, bytes, nonces, isChanged: false } as Kept;
    counts.set(id, kept);
    return kept;
  };
  const change = (id: number, rows: number, bytes: number, nonces: number): Kept => {
    const was = countOf(id);
    const is = { rows: was.rows + rows, bytes: was.bytes + bytes, nonces: was.nonces + nonces };
    counts.set(id, { ...is, within: was.within, isChanged: true });
    return was;
  };
  return {
    id: idOf,
    keyids: (sender) =>
      (named.all(idOf({ sender })) as SqliteRow[]).map((row) => ({
        sender,
        keyid: fromColumnText(textOf(row, 'name')),
      })),
    add: (id, rows, bytes) => {
      const { within } = change(id, rows, bytes, 0);
      if (within <= ROOT) return;
      change(within, 0, 0, rows);
      change(ROOT, 0, 0, rows);
    },
    usage: (sender, keyid) => {
      const { rows, bytes, nonces } = countOf(idOf({ sender }));
      return {
        entries: rows,
        pendingBytes: bytes,
        nonces: keyid === undefined ? 0 : countOf(idOf({ sender, keyid })).rows,
        senderNonces: nonces,
        allNonces: countOf(ROOT).nonces,
      };
    },
    begin: () => counts.clear(),
    save: () => {
      for (const [id, { rows, bytes, nonces, isChanged }] of counts) {
        if (isChanged) save.run(rows, bytes, nonces, id);
      }
    },
    forget: () => {
      root.within.clear();
      counts.clear();
    },
  };
}
