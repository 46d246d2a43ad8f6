// Converts commits and names of rows to parameters of the Postgres functions, and results to rows (admission.md §8.3).
// Called by postgres-backend.ts.
import type { CommitRequest, Counted, Row, RowId, Write } from '../backend.ts';
import type { ScopeIds, Tally } from '../sql/row-lines.ts';
import { bytesOf, kindOf, LETTER, linesOf, tallyOf } from '../sql/row-lines.ts';
import { fromColumnText } from '../text.ts';
import { isBytes } from '../../shared/realms.ts';

/**
 * One column of all rows of a batch, as an array in PostgreSQL's text form; null if all its values are null. The text
 * is made here, because the driver's own conversion costs more than the rest of a batch.
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

/**
 * Returns the parameters of the database function `webhook_commit` that describe the units, in the function's order.
 */
export function commitValues(request: CommitRequest, ids: ScopeIds): readonly unknown[] {
  const lines = linesOf(request, ids);
  const names = columns(5);
  const [unit, scope, kind, id, version] = names;
  const contents = columns(9);
  const places = columns(4);
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
    if (!write) {
      // This row is only compared with the stored version, so its content columns are null.
      for (const one of [...contents, ...places]) one.add(null);
      if (of.version === undefined) reads += 1;
      continue;
    }
    if (of.version === undefined) inserts += 1;
    else updates += 1;
    addContent(contents, write);
    at = addBytes(places, write, bytes, at);
  }
  return [
    reads > 0,
    inserts,
    updates,
    ...[...names, ...contents, ...places].map(valueOf),
    bytes.all.subarray(0, at),
    ...tallyColumns([BARRIER, ...tallyOf(lines)]).map(valueOf),
    request.counts.length > 0 ? `{${request.counts.map(ids.idOf).join(',')}}` : null,
  ];
}

function addContent(
  [next, expires, due, suspect, crashes, list, waits, link, size]: Columns<9>,
  write: Write,
): void {
  next.add(write.next);
  expires.add(write.expiresAt);
  due.add(write.dueAt);
  suspect.add(write.suspect?.at);
  crashes.add(write.suspect?.crashes);
  list.add(write.list);
  waits.add(write.waitsFor);
  link.add(write.link);
  size.add(write.bytes);
}

/**
 * Writes the text and the body of a row into `bytes`, and adds their positions and lengths to the columns.
 *
 * @returns the position at which the next row begins.
 */
function addBytes(
  [atData, ofData, atBody, ofBody]: Columns<4>,
  { data, body }: Write,
  bytes: ReturnType<typeof bytesOf>,
  from: number,
): number {
  const written = bytes.text(data, from);
  const at = from + written;
  atData.add(from);
  ofData.add(written);
  atBody.add(body ? at : body === null ? -1 : null);
  ofBody.add(body?.length);
  return body ? at + bytes.body(body, at) : at;
}

const valueOf = (column: Column): string | null => column.value();

type Columns<N extends number, A extends readonly Column[] = []> = A['length'] extends N
  ? A
  : Columns<N, [...A, Column]>;

function columns<N extends number>(count: N): Columns<N> {
  return Array.from({ length: count }, column) as unknown as Columns<N>;
}

/**
 * A line that is added to the counts of every commit. Without this line, a commit that writes nothing would not wait
 * for earlier commits, on which its answer depends.
 */
const BARRIER: Tally = [-1, 0, 0, 0];

function tallyColumns(tally: readonly Tally[]): readonly Column[] {
  const all = columns(4);
  for (const line of tally) for (const [at, column] of all.entries()) column.add(line[at]);
  return all;
}

/** Returns the parameters by which database functions find rows: the scopes' ids, the kinds and the ids. */
export function nameValues(rows: readonly RowId[], { idOf }: ScopeIds): readonly unknown[] {
  if (rows.length === 0) return [null, null, null];
  return [
    rows.map(({ scope }) => idOf(scope)),
    rows.map(({ kind }) => LETTER[kind]),
    rows.map(({ id }) => id),
  ];
}

/** The columns of a row in the result of a database function. */
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
    kind: kindOf(kind),
    id,
    version: Number(version),
    data,
    ...(body && { body }),
  };
}

/** Reads the column of a body. With a changed type parser the pool returns `bytea` as hex text, which is read too. */
function bodyOf(column: unknown): Uint8Array | undefined {
  if (isBytes(column)) return new Uint8Array(column);
  if (typeof column !== 'string' || !column.startsWith('\\x')) return undefined;
  return Uint8Array.from(column.slice(2).match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

/** Reads the counts that the database function `webhook_counts` returned; scope 0 has the nonces of all senders. */
export function countsOf(
  counted:
    | readonly (readonly [scope: number, rows: number, bytes: number, nonces: number | null])[]
    | null
    | undefined,
  ids: ScopeIds,
): { readonly counts: readonly Counted[]; readonly nonces: number | undefined } {
  const counts: Counted[] = [];
  let nonces: number | undefined;
  for (const [id, rows, bytes, ofSender] of counted ?? []) {
    const scope = ids.scopeOf(id);
    if (id === 0) nonces = rows;
    else if (scope) counts.push({ scope, rows, bytes, nonces: ofSender ?? 0 });
  }
  return { counts, nonces };
}
