// The table of rows of every kind, by kind, scope and name (admission.md §8.1).
// Called by sqlite-rows.ts; `indexed` and `packed` of the optimistic store make each row's columns and text.
import type { RowKind, Scope } from '../backend.ts';
import type { RowData } from '../optimistic/row-data.ts';
import { packed, unpacked } from '../optimistic/row-data.ts';
import { indexed } from '../optimistic/commit-unit.ts';
import { columnText } from '../text.ts';
import type { SqliteHandle, SqliteRow, SqliteValue } from './handle.ts';
import { textOf } from './handle.ts';
import type { Scopes } from './scopes.ts';

/**
 * Reads and writes rows of any kind, by name. Only the rules know the meaning of a row; `indexed` makes the columns for
 * searches.
 *
 * The statements, with parameters → result. A name is kind, scope and id:
 *
 *     find    name, now → the text of the row, unless it has expired
 *     insert  all columns → 1 row if the name is new
 *     keep    body → saves the body of the row that was inserted last
 *     update  changed columns, name → 1 row if the name exists
 *     body    name → the body
 *     drop    name → deletes the body, and returns its length
 *     remove  name → deletes the row, and returns it
 */
export interface Table {
  find<K extends RowKind>(kind: K, scope: Scope, id: string, now: number): RowData[K] | undefined;
  /** Inserts a row. An expired row with the same name is deleted first. */
  insert<K extends RowKind>(kind: K, scope: Scope, id: string, row: RowData[K], body?: Uint8Array): void;
  /**
   * Inserts or replaces a row.
   *
   * @param isKnown true if a row with this name probably exists. Then an update is tried first, otherwise an insert.
   */
  save<K extends RowKind>(kind: K, scope: Scope, id: string, row: RowData[K], isKnown: boolean): void;
  body(kind: RowKind, scope: Scope, id: string): Uint8Array;
  dropBody(kind: RowKind, scope: Scope, id: string): void;
  /** Deletes at most `most` expired rows of a kind, the earliest first. With `scope` only rows of that scope. */
  purge(kind: RowKind, now: number, most: number, scope?: Scope): void;
}

const NAMED = 'kind = ? AND scope = ? AND name = ?';
/** The columns of deleted rows with which `gone` corrects the counts. Only a row on a list can have a body. */
const GONE = 'RETURNING id, scope, list';

export function tableOf(db: SqliteHandle, scopes: Scopes): Table {
  const find = db.prepare(
    `SELECT data FROM webhook_row WHERE ${NAMED} AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const insert = db.prepare(
    `INSERT INTO webhook_row (data, expires_at, due_at, crashes, list, waits_for, kind, scope, name)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const update = db.prepare(
    `UPDATE webhook_row SET data = ?, expires_at = ?, due_at = ?, crashes = ?, list = ?, waits_for = ? WHERE ${NAMED}`,
  );
  const remove = db.prepare(`DELETE FROM webhook_row WHERE ${NAMED} ${GONE}`);
  const keep = db.prepare('INSERT INTO webhook_copy (id, body) SELECT last_insert_rowid(), ? WHERE ? > 0');
  const ROW = `(SELECT id FROM webhook_row WHERE ${NAMED})`;
  const body = db.prepare(`SELECT body FROM webhook_copy WHERE id = ${ROW}`);
  const drop = db.prepare(`DELETE FROM webhook_copy WHERE id = ${ROW} RETURNING length(body) AS bytes`);
  const clear = db.prepare('DELETE FROM webhook_copy WHERE id = ? RETURNING length(body) AS bytes');
  const bytesOf = (rows: unknown[]): number => Number((rows[0] as SqliteRow | undefined)?.['bytes'] ?? 0);
  const gone = (rows: unknown[]): void => {
    for (const { id, scope, list } of rows as SqliteRow[]) {
      scopes.add(Number(scope), -1, list === null ? 0 : -bytesOf(clear.all(Number(id))));
    }
  };
  const purge = purges(db, gone);

  const table: Table = {
    find: (kind, scope, id, now) => {
      const name = columnText(id);
      const row = find.get(kind, scopes.id(scope), name, now) as SqliteRow | undefined;
      return row && (unpacked({ scope, kind, id: name, data: textOf(row, 'data') }) as RowData[typeof kind]);
    },
    insert: (kind, scope, id, row, bytes = NO_BYTES) => {
      const values = valuesOf(kind, scopes.id(scope), id, row);
      if (Number(insert.run(...values).changes) === 0) {
        gone(remove.all(...values.slice(-3)));
        insert.run(...values);
      }
      keep.run(bytes, bytes.length);
      scopes.add(scopes.id(scope), 1, bytes.length);
    },
    save: (kind, scope, id, row, isKnown) => {
      const of = scopes.id(scope);
      const values = valuesOf(kind, of, id, row);
      if (isKnown && Number(update.run(...values).changes) > 0) return;
      if (Number(insert.run(...values).changes) > 0) scopes.add(of, 1, 0);
      else update.run(...values);
    },
    body: (kind, scope, id) => {
      const row = body.get(kind, scopes.id(scope), columnText(id)) as SqliteRow | undefined;
      return (row?.['body'] ?? NO_BYTES) as Uint8Array;
    },
    dropBody: (kind, scope, id) => {
      const of = scopes.id(scope);
      scopes.add(of, 0, -bytesOf(drop.all(kind, of, columnText(id))));
    },
    purge: (kind, now, most, scope) => purge(kind, now, most, scope && scopes.id(scope)),
  };
  return table;
}

const NO_BYTES = new Uint8Array();

/** Returns the values that the statements `insert` and `update` take. */
function valuesOf<K extends RowKind>(kind: K, scope: number, id: string, row: RowData[K]): SqliteValue[] {
  const name = columnText(id);
  const { expiresAt, dueAt, suspect, list, waitsFor } = indexed(kind, row, columnText);
  const data = packed({ kind, id: name }, row);
  return [data, expiresAt, suspect?.at ?? dueAt, suspect?.crashes ?? null, list, waitsFor, kind, scope, name];
}

/**
 * Makes the function that deletes expired rows of a kind, the earliest first. The statements, with parameters → result:
 *
 *     any    kind, now → a row if one has expired; mostly none has
 *     all    kind, now, most → the deleted rows
 *     owned  kind, now, scope, most → the deleted rows of the scope; `+` makes SQLite search only among expired rows
 */
function purges(db: SqliteHandle, gone: (rows: unknown[]) => void) {
  const expired = 'FROM webhook_row WHERE kind = ? AND expires_at <= ?';
  const found = (condition: string): string =>
    `DELETE FROM webhook_row WHERE id IN (SELECT id ${expired} ${condition} ORDER BY expires_at LIMIT ?) ${GONE}`;
  const any = db.prepare(`SELECT 1 ${expired} LIMIT 1`);
  const all = db.prepare(found(''));
  const owned = db.prepare(found('AND +scope = ?'));
  return (kind: RowKind, now: number, most: number, scope: number | undefined): void => {
    if (any.get(kind, now) === undefined) return;
    gone(scope === undefined ? all.all(kind, now, most) : owned.all(kind, now, scope, most));
  };
}
