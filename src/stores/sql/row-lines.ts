// Converts a commit to lines for SQL statements, one for each row. Also letters of kinds, columns of scopes, the order
// of locks, and counts (admission.md §8.3, §8.4).
// Called by sql-backend.ts, and by the row files of Postgres and MySQL.
import type { CommitRequest, Expected, RowKind, Scope, Write } from '../backend.ts';
import { columnText, fromColumnText } from '../text.ts';

/** The letter that stands for each kind of row in the column `kind`. */
export const LETTER: Readonly<Record<RowKind, string>> = {
  task: 't',
  record: 'r',
  nonce: 'n',
  notification: 'i',
  process: 'p',
  operation: 'O',
  route: 'U',
  watch: 'W',
  stream: 'S',
  subscription: 'B',
  snapshot: 'H',
  move: 'M',
};
const KIND: Readonly<Record<string, RowKind>> = {
  t: 'task',
  r: 'record',
  n: 'nonce',
  i: 'notification',
  p: 'process',
  O: 'operation',
  U: 'route',
  W: 'watch',
  S: 'stream',
  B: 'subscription',
  H: 'snapshot',
  M: 'move',
};
/** The order in which rows are locked. Tasks come first, because a task's lock protects the order of its records. */
const LOCKED: Readonly<Record<RowKind, number>> = {
  task: 0,
  record: 1,
  nonce: 2,
  notification: 3,
  process: 4,
  operation: 5,
  route: 6,
  watch: 7,
  stream: 8,
  subscription: 9,
  snapshot: 10,
  move: 11,
};

export function kindOf(letter: string): RowKind {
  return KIND[letter] ?? 'record';
}

/** Returns the columns of `webhook_scope` that name a scope. */
export function scopeColumns({ sender, keyid }: Scope): readonly [sender: string, key: string] {
  return [columnText(sender), keyid === undefined ? '' : `=${keyid}`];
}

export function scopeFrom({ sender, key }: { readonly sender: string; readonly key: string }): Scope {
  return { sender: fromColumnText(sender), ...(key !== '' && { keyid: key.slice(1) }) };
}

/** Finds the database id of a scope (a sender, or one of its key ids), and the scope of an id. */
export interface ScopeIds {
  readonly idOf: (scope: Scope) => number;
  readonly scopeOf: (id: number) => Scope | undefined;
}

/** A row whose version a commit compares, and which it also writes if `write` is present. */
export interface Line {
  readonly of: Expected;
  readonly unit: number;
  readonly scopeId: number;
  readonly write?: Write;
}

/** Returns the rows of all units, in the order in which they are locked. */
export function linesOf({ units }: CommitRequest, { idOf }: ScopeIds): readonly Line[] {
  const lines: Line[] = [];
  for (const [unit, { expects, writes }] of units.entries()) {
    for (const of of expects) lines.push({ of, unit, scopeId: idOf(of.scope) });
    for (const write of writes) lines.push({ of: write, unit, scopeId: idOf(write.scope), write });
  }
  return lines.sort(byLock);
}

function byLock(a: Line, b: Line): number {
  return (
    LOCKED[a.of.kind] - LOCKED[b.of.kind] ||
    a.scopeId - b.scopeId ||
    (a.of.id < b.of.id ? -1 : a.of.id > b.of.id ? 1 : 0)
  );
}

/** The numbers of rows and bytes that a unit (a group of row changes) adds to a scope. */
export type Tally = readonly [unit: number, scopeId: number, rows: number, bytes: number];

/** Returns the rows and bytes that each unit adds to the counts. Scope 0 counts the nonces of all senders. */
export function tallyOf(lines: readonly Line[]): readonly Tally[] {
  const tally: Tally[] = [];
  for (const { of, unit, scopeId, write } of lines) {
    if (!write) continue;
    const rows = of.version === undefined ? 1 : 0;
    const bytes = write.bytes - write.bytesBefore;
    if (rows !== 0 || bytes !== 0) tally.push([unit, scopeId, rows, bytes]);
    if (rows !== 0 && of.kind === 'nonce') tally.push([unit, 0, rows, 0]);
  }
  return tally;
}

/** Yields every scope that a commit names. */
export function* scopesIn({ units, counts }: CommitRequest): Iterable<Scope> {
  for (const { expects, writes } of units) {
    for (const { scope } of expects) yield scope;
    for (const { scope } of writes) yield scope;
  }
  yield* counts;
}

const encoder = new TextEncoder();

/** Makes the one parameter that holds all texts and bodies, and that the driver sends as bytes. */
export function bytesOf(lines: readonly Line[]): {
  readonly all: Uint8Array;
  /** Writes a text at the byte position `at`, and returns the number of bytes that it wrote. */
  readonly text: (text: string, at: number) => number;
  readonly body: (body: Uint8Array, at: number) => number;
} {
  let most = 0;
  for (const { write } of lines) if (write) most += 3 * write.data.length + (write.body?.length ?? 0);
  const all = new Uint8Array(most);
  return {
    all,
    text: (text, at) => encoder.encodeInto(text, all.subarray(at)).written,
    body: (body, at) => {
      all.set(body, at);
      return body.length;
    },
  };
}
