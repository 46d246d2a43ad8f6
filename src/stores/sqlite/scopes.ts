// Finds the ids of senders and key ids in SQLite, and keeps the counts of their rows (admission.md §6.6, §6.7).
// Called by sqlite-rows.ts and sqlite-table.ts.
import type { Scope } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';

/**
 * The counts of a scope (a sender, or one of its key ids). `nonces` counts all key ids of a sender; for scope 0, those
 * of all senders.
 */
export interface Count {
  readonly rows: number;
  /** The bytes of the stored bodies of events. */
  readonly bytes: number;
  readonly nonces: number;
}

/**
 * The senders and key ids (scopes) of the store, with the counts of each. Counts are read once in a transaction, and
 * written once at its end. A transaction holds the write lock from its beginning, so no other process changes them
 * meanwhile. So 64 accepts of a sender change one row once, instead of some 300 times.
 *
 * The statements, with parameters → result. Key ids are within their sender, senders are within scope 0:
 *
 *     find   outer scope, name → id
 *     add    outer scope, name → inserts a row; rows are few, and never deleted
 *     look   id → outer scope, and the counts
 *     named  id → names of all scopes within it
 *     save   counts, id → writes the counts
 */
export interface Scopes {
  /**
   * Returns the id of a scope (a sender, or one of its key ids), and adds a new scope. Each is looked up once for a
   * handle, because ids never change.
   */
  readonly id: (scope: Scope) => number;
  /** Returns the scopes of all key ids of a sender. */
  readonly keyids: (sender: string) => readonly Scope[];
  /** Adds rows and bytes to a scope's counts; negative numbers subtract. */
  readonly add: (id: number, rows: number, bytes: number) => void;
  readonly usage: (sender: string, keyid: string | undefined) => Usage;
  /**
   * Forgets the counts at the beginning of a transaction, because other processes may have changed them since the last
   * one.
   */
  readonly begin: () => void;
  /** Writes the changed counts of a transaction, before its COMMIT. */
  readonly save: () => void;
  /** Forgets all counts and ids after a rollback, because the rollback has undone the counts and removed new ids. */
  readonly forget: () => void;
}

/** The id of the scope that has the rows of processes. It also has the counts over all senders. */
const ROOT = 0;

interface Kept extends Count {
  readonly within: number;
  readonly isChanged: boolean;
}

/** The id of a scope, and by name the scopes within it: key ids within a sender, senders within `ROOT`. */
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
