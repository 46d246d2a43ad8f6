/**
 * Rows by key, with the row that was looked up last at hand: one step of the store asks for the same ones several
 * times, found or not, and a map of a million is slow to ask.
 */
export interface Table<R> {
  /** To be changed by `put` and `drop` alone. */
  readonly byKey: Map<string, R>;
  lastKey: string | undefined;
  last: R | undefined;
}

export function newTable<R>(): Table<R> {
  return { byKey: new Map(), lastKey: undefined, last: undefined };
}

export function find<R>(table: Table<R>, key: string): R | undefined {
  if (table.lastKey === key) return table.last;
  const row = table.byKey.get(key);
  table.lastKey = key;
  table.last = row;
  return row;
}

export function put<R>(table: Table<R>, key: string, row: R): void {
  table.byKey.set(key, row);
  table.lastKey = key;
  table.last = row;
}

/** Whether there was one. */
export function drop<R>(table: Table<R>, key: string): boolean {
  if (table.lastKey === key) table.last = undefined;
  return table.byKey.delete(key);
}
