// Converts commits and names of rows to parameters of the MySQL procedures, and results to rows (admission.md §8.3).
// Called by mysql-backend.ts and mysql-list.ts.
import type { CommitRequest, Counted, Row, RowId, Scope } from '../backend.ts';
import type { Line, ScopeIds, Tally } from '../sql/row-lines.ts';
import { bytesOf, kindOf, LETTER, linesOf, scopeFrom, tallyOf } from '../sql/row-lines.ts';
import type { Columns } from './mysql-client.ts';
import { textOf } from './mysql-client.ts';
import { isBytes } from '../../shared/realms.ts';

/**
 * Returns the last parameters of the procedure `webhook_commit`: all that follow `p_wait`, the longest wait for a
 * lock.
 */
export function commitValues(request: CommitRequest, ids: ScopeIds): readonly unknown[] {
  const lines = linesOf(request, ids);
  const bytes = bytesOf(lines);
  let at = 0;
  const columns = lines.map((line) => {
    const { write } = line;
    if (!write) return nameOf(line);
    const data = at;
    at += bytes.text(write.data, at);
    const body = at;
    if (write.body) at += bytes.body(write.body, at);
    const { next, expiresAt, dueAt, suspect, list, waitsFor, link } = write;
    return [
      ...nameOf(line),
      next,
      expiresAt,
      dueAt,
      suspect?.at,
      suspect?.crashes,
      list,
      waitsFor,
      link,
      write.bytes,
      data,
      body - data,
      write.body ? body : write.body === null ? -1 : null,
      at - body,
    ];
  });
  return [
    JSON.stringify(columns),
    bytes.all.subarray(0, at),
    listOf(tallyOf(lines).map(withBit)),
    countedOf(request.counts, ids),
  ];
}

/**
 * The number of bits in which `webhook_commit` reports refused units (groups of row changes). Each unit has one bit.
 * Two units with the same bit are refused together and planned again, as if others had changed the rows of both.
 */
const BITS = 64;
const bitOf = (unit: number): number => unit % BITS;
const withBit = ([unit, ...rest]: Tally): readonly number[] => [bitOf(unit), ...rest];

/**
 * Returns the places, in the request, of the units (groups of row changes) that a commit has refused.
 *
 * @param hexBits the bits of these units, as a hexadecimal number.
 */
export function refusedOf({ units }: CommitRequest, hexBits: unknown): readonly number[] {
  const bits = BigInt(`0x${String(hexBits)}`);
  return [...units.keys()].filter((unit) => (bits >> BigInt(bitOf(unit))) & 1n);
}

function nameOf({ of, unit, scopeId }: Line): readonly unknown[] {
  return [bitOf(unit), scopeId, LETTER[of.kind], of.id, of.version];
}

/** Returns a list as JSON; null if it is empty. */
function listOf(list: readonly unknown[]): string | null {
  return list.length > 0 ? JSON.stringify(list) : null;
}

/**
 * Returns as JSON the ids of the scopes to count, and 0, which stands for the nonces of all senders. Null if none are
 * to be counted.
 */
export function countedOf(scopes: readonly Scope[], { idOf }: ScopeIds): string | null {
  return scopes.length > 0 ? JSON.stringify([...scopes.map(idOf), 0]) : null;
}

/**
 * Returns the names of rows as JSON, in the form that procedures take. Rows to read with their bodies are marked with
 * 1.
 */
export function namesOf(rows: readonly RowId[], bodies: readonly RowId[], { idOf }: ScopeIds): string | null {
  return listOf(
    [...rows, ...bodies].map(({ scope, kind, id }, at) => [
      at < rows.length ? 0 : 1,
      idOf(scope),
      LETTER[kind],
      id,
    ]),
  );
}

/**
 * Reads rows that the procedure `webhook_look` returned. Result rows without `data` are left out: they have counts, or
 * the number of changes.
 */
export function rowsOf(rows: readonly Columns[]): readonly Row[] {
  return rows
    .filter(({ data }) => data !== undefined)
    .toSorted((a, b) => Number(a['seq']) - Number(b['seq']))
    .map(rowOf);
}

/** Reads rows, in the order in which the SELECT returned them. */
export function rowsIn(rows: readonly Columns[]): readonly Row[] {
  return rows.map(rowOf);
}

function rowOf({ sender, keyid, kind, id, version, data, body }: Columns): Row {
  return {
    scope: scopeFrom({ sender: textOf(sender), key: textOf(keyid) }),
    kind: kindOf(textOf(kind)),
    id: textOf(id),
    version: Number(version),
    data: textOf(data),
    ...(isBytes(body) && { body: new Uint8Array(body) }),
  };
}

/** Reads the counts that the procedure `webhook_counts` returned; scope 0 has the nonces of all senders. */
export function countsOf(
  columns: readonly Columns[],
  ids: ScopeIds,
): { readonly counts: readonly Counted[]; readonly nonces: number | undefined } {
  const counts: Counted[] = [];
  let nonces: number | undefined;
  for (const { scope_id, entries, bytes, of_sender } of columns) {
    if (entries === undefined) continue;
    const scope = ids.scopeOf(Number(scope_id));
    if (Number(scope_id) === 0) nonces = Number(entries);
    else if (scope)
      counts.push({ scope, rows: Number(entries), bytes: Number(bytes), nonces: Number(of_sender) });
  }
  return { counts, nonces };
}
