import type { CommitRequest, Counted, Expected, Row, RowId, RowKind, Scope, Write } from '../backend.ts';
import { columnText, fromColumnText } from '../text.ts';

/** As the table has them. The order in which rows are locked begins with the task, which orders its records. */
const LETTER: Readonly<Record<RowKind, string>> = {
  task: 't',
  record: 'r',
  nonce: 'n',
  notification: 'i',
  process: 'p',
};
const KIND: Readonly<Record<string, RowKind>> = {
  t: 'task',
  r: 'record',
  n: 'nonce',
  i: 'notification',
  p: 'process',
};
const LOCKED: Readonly<Record<RowKind, number>> = {
  task: 0,
  record: 1,
  nonce: 2,
  notification: 3,
  process: 4,
};

/** Columns of `webhook_scope`. */
export function scopeColumns({ sender, keyid }: Scope): readonly [sender: string, key: string] {
  return [columnText(sender), keyid === undefined ? '' : `=${keyid}`];
}

export function scopeFrom({ sender, key }: { readonly sender: string; readonly key: string }): Scope {
  return { sender: fromColumnText(sender), ...(key !== '' && { keyid: key.slice(1) }) };
}

/** Ids of scopes, and scopes by id. */
export interface ScopeIds {
  readonly idOf: (scope: Scope) => number;
  readonly scopeOf: (id: number) => Scope | undefined;
}

interface Line {
  readonly of: Expected;
  readonly unit: number;
  readonly scopeId: number;
  readonly write?: Write;
}

function linesOf({ units }: CommitRequest, { idOf }: ScopeIds): readonly Line[] {
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

/**
 * An array as PostgreSQL reads it, null where it would hold nothing else. Made here, for the driver's own way costs more
 * than all the rest of a batch.
 */
interface Column {
  readonly add: (value: number | string | null | undefined) => void;
  readonly value: () => string | null;
}

function column(): Column {
  let text = '';
  let isNull = true;
  return {
    add: (value) => {
      if (value == null) text += ',NULL';
      else {
        isNull = false;
        text +=
          typeof value === 'number'
            ? `,${value}`
            : `,"${SPECIAL.test(value) ? value.replace(SPECIALS, '\\$&') : value}"`;
      }
    },
    value: () => (isNull ? null : `{${text.slice(1)}}`),
  };
}

const SPECIAL = /["\\]/;
const SPECIALS = /["\\]/g;

/** Parameters of `webhook_commit` behind clock, offset and settings. */
export function commitValues(request: CommitRequest, ids: ScopeIds): readonly unknown[] {
  const lines = linesOf(request, ids);
  const [unit, scope, kind, id, version, next, expires, due, suspect, crashes, list, waits, link, size] =
    columns(14);
  const places = columns(4);
  const [atData, ofData, atBody, ofBody] = places;
  const bytes = bytesOf(lines);
  let at = 0;
  let reads = 0;
  let inserts = 0;
  let updates = 0;
  for (const { of, unit: place, scopeId, write } of lines) {
    unit.add(place);
    scope.add(scopeId);
    kind.add(LETTER[of.kind]);
    id.add(of.id);
    version.add(of.version);
    next.add(write?.next);
    expires.add(write?.expiresAt);
    due.add(write?.dueAt);
    suspect.add(write?.suspect?.at);
    crashes.add(write?.suspect?.crashes);
    list.add(write?.list);
    waits.add(write?.waitsFor);
    link.add(write?.link);
    size.add(write?.bytes);
    if (!write) {
      for (const one of places) one.add(null);
      if (of.version === undefined) reads += 1;
      continue;
    }
    if (of.version === undefined) inserts += 1;
    else updates += 1;
    const written = bytes.text(write.data, at);
    atData.add(at);
    ofData.add(written);
    at += written;
    atBody.add(write.body ? at : write.body === null ? -1 : null);
    ofBody.add(write.body?.length);
    if (write.body) at += bytes.body(write.body, at);
  }
  return [
    reads > 0,
    inserts,
    updates,
    ...[unit, scope, kind, id, version, next, expires, due, suspect, crashes].map(valueOf),
    ...[list, waits, link, size, ...places].map(valueOf),
    bytes.all.subarray(0, at),
    ...tallyOf(lines).map(valueOf),
    ...exactOf(request, ids).map(valueOf),
    request.counts.length > 0 ? `{${request.counts.map(ids.idOf).join(',')}}` : null,
  ];
}

const valueOf = (column: Column): string | null => column.value();

type Columns<N extends number, A extends readonly Column[] = []> = A['length'] extends N
  ? A
  : Columns<N, [...A, Column]>;

function columns<N extends number>(count: N): Columns<N> {
  return Array.from({ length: count }, column) as unknown as Columns<N>;
}

function exactOf({ units }: CommitRequest, { idOf }: ScopeIds): readonly Column[] {
  const exact = columns(4);
  const [place, scopeId, rowCount, byteCount] = exact;
  for (const [unit, { counts }] of units.entries()) {
    for (const { scope, rows, bytes } of counts) {
      place.add(unit);
      scopeId.add(idOf(scope));
      rowCount.add(rows);
      byteCount.add(bytes);
    }
  }
  return exact;
}

/**
 * What each unit adds to the counts. One line is there in any case: a commit in which nothing is written would not wait
 * for those before it, on which an answer rests.
 */
function tallyOf(lines: readonly Line[]): readonly Column[] {
  const tally = columns(4);
  const [place, scope, rowCount, byteCount] = tally;
  const add = (unit: number, id: number, rows: number, bytes: number): void => {
    place.add(unit);
    scope.add(id);
    rowCount.add(rows);
    byteCount.add(bytes);
  };
  add(-1, 0, 0, 0);
  for (const { of, unit, scopeId, write } of lines) {
    if (!write) continue;
    const rows = of.version === undefined ? 1 : 0;
    const bytes = write.bytes - write.bytesBefore;
    if (rows !== 0 || bytes !== 0) add(unit, scopeId, rows, bytes);
    if (rows !== 0 && of.kind === 'nonce') add(unit, 0, rows, 0);
  }
  return tally;
}

const encoder = new TextEncoder();

/** Texts and bodies travel side by side in one parameter, which the driver sends as bytes. */
function bytesOf(lines: readonly Line[]): {
  readonly all: Uint8Array;
  /** Each writes at a place, and says how many bytes it wrote. */
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

/** Parameters that name rows: scopes, kinds, ids. */
export function nameValues(rows: readonly RowId[], { idOf }: ScopeIds): readonly unknown[] {
  if (rows.length === 0) return [null, null, null];
  return [
    rows.map(({ scope }) => idOf(scope)),
    rows.map(({ kind }) => LETTER[kind]),
    rows.map(({ id }) => id),
  ];
}

/** A row as a function answers it. */
export interface RowColumns {
  readonly sender?: string | null;
  readonly scope_id: number | null;
  readonly kind: string;
  readonly id: string;
  readonly version: string;
  readonly data: string;
  readonly body: unknown;
  readonly place?: string | number | null;
}

export function rowOf(columns: RowColumns, ids: ScopeIds): Row {
  const { sender, scope_id, kind, id, version, data } = columns;
  const scope = sender == null ? ids.scopeOf(scope_id ?? 0) : { sender: fromColumnText(sender) };
  const body = bodyOf(columns.body);
  return {
    scope: scope ?? { sender: '' },
    kind: KIND[kind] ?? 'record',
    id,
    version: Number(version),
    data,
    ...(body && { body }),
  };
}

/** A pool whose parser leaves bytea as text is understood too. */
function bodyOf(column: unknown): Uint8Array | undefined {
  if (column instanceof Uint8Array) return new Uint8Array(column);
  if (typeof column !== 'string' || !column.startsWith('\\x')) return undefined;
  return Uint8Array.from(column.slice(2).match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

/** What `webhook_counts` says; nonces of all are the last. */
export function countsOf(
  said:
    | readonly (readonly [scope: number, rows: number, bytes: number, nonces: number | null])[]
    | null
    | undefined,
  ids: ScopeIds,
): { readonly counts: readonly Counted[]; readonly nonces: number | undefined } {
  const counts: Counted[] = [];
  let nonces: number | undefined;
  for (const [id, rows, bytes, ofSender] of said ?? []) {
    const scope = ids.scopeOf(id);
    if (id === 0) nonces = rows;
    else if (scope) counts.push({ scope, rows, bytes, nonces: ofSender ?? 0 });
  }
  return { counts, nonces };
}
