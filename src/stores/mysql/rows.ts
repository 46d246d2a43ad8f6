import type { CommitRequest, Counted, Row, RowId, Scope } from '../backend.ts';
import type { Line, ScopeIds } from '../sql/lines.ts';
import { bytesOf, exactOf, kindOf, LETTER, linesOf, scopeFrom, tallyOf } from '../sql/lines.ts';
import type { Columns } from './client.ts';
import { textOf } from './client.ts';

/** Parameters of `webhook_commit` behind the clock and the wait. */
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
    listOf(tallyOf(lines)),
    listOf(exactOf(request, ids).toSorted(([, a], [, b]) => a - b)),
    countedOf(request.counts, ids),
  ];
}

function nameOf({ of, unit, scopeId }: Line): readonly unknown[] {
  return [unit, scopeId, LETTER[of.kind], of.id, of.version];
}

/** As JSON; null where there is nothing. */
function listOf(list: readonly unknown[]): string | null {
  return list.length > 0 ? JSON.stringify(list) : null;
}

/** Scopes to be counted, and all of them (0). */
export function countedOf(scopes: readonly Scope[], { idOf }: ScopeIds): string | null {
  return scopes.length > 0 ? JSON.stringify([...scopes.map(idOf), 0]) : null;
}

/** As procedures take rows by name. */
export function namesOf(rows: readonly RowId[], bodies: readonly RowId[], { idOf }: ScopeIds): string | null {
  return listOf(
    [...rows, ...bodies].map(({ scope, kind, id }, at) => [
      idOf(scope),
      LETTER[kind],
      id,
      at < rows.length ? 0 : 1,
    ]),
  );
}

/** Rows as `webhook_look` has them; behind those of a call comes what it changed. */
export function rowsOf(rows: readonly Columns[]): readonly Row[] {
  return rows.filter(({ data }) => data !== undefined).map(rowOf);
}

function rowOf({ sender, keyid, kind, id, version, data, body }: Columns): Row {
  return {
    scope: scopeFrom({ sender: textOf(sender), key: textOf(keyid) }),
    kind: kindOf(textOf(kind)),
    id: textOf(id),
    version: Number(version),
    data: textOf(data),
    ...(body instanceof Uint8Array && { body: new Uint8Array(body) }),
  };
}

/** What `webhook_counts` says. */
export function countsOf(
  said: unknown,
  ids: ScopeIds,
): { readonly counts: readonly Counted[]; readonly nonces: number | undefined } {
  const counts: Counted[] = [];
  let nonces: number | undefined;
  const all = typeof said === 'string' ? (JSON.parse(said) as readonly (readonly number[])[]) : [];
  for (const [id = 0, rows = 0, bytes = 0, ofSender = 0] of all) {
    const scope = ids.scopeOf(id);
    if (id === 0) nonces = rows;
    else if (scope) counts.push({ scope, rows, bytes, nonces: ofSender });
  }
  return { counts, nonces };
}
