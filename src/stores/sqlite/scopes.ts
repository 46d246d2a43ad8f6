import type { Scope } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';

/** What is counted of a scope; `nonces`: of a sender those of all its key ids, of scope 0 all. */
export interface Count {
  readonly rows: number;
  /** Of the bodies that are kept. */
  readonly bytes: number;
  readonly nonces: number;
}

/**
 * Senders and key ids by name, and what is counted of each. Counts are read once a transaction and written once, at its
 * end: a transaction holds the write lock from its beginning, so that nobody else changes what was read; and 64 accepts
 * of a sender change one row once instead of some 300 times.
 *
 *     find  the scope that it is within, name → id
 *     add   the same → a row. Few, and never deleted
 *     look  id → the scope that it is within, and its counts
 *     named id → names of the scopes within it
 *     save  counts, id
 */
export interface Scopes {
  /** Looked up once a handle, for ids never change; added where it is new. */
  readonly id: (scope: Scope) => number;
  /** Of a sender. */
  readonly keyids: (sender: string) => readonly Scope[];
  /** More or fewer rows and bytes. */
  readonly add: (id: number, rows: number, bytes: number) => void;
  readonly usage: (sender: string, keyid: string | undefined) => Usage;
  /** A transaction begins: what was counted in the one before may have changed. */
  readonly begin: () => void;
  /** Before its COMMIT: what was counted in it. */
  readonly save: () => void;
  /** After a rollback: ids found since may not exist, and counts are as they were. */
  readonly forget: () => void;
}

/** Processes; and what is counted over all senders. */
const ROOT = 0;

interface Kept extends Count {
  readonly within: number;
  readonly isChanged: boolean;
}

/** A scope's id, and those of the scopes within it. */
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
