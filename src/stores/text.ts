/** Marks a text that was encoded, and texts that begin with it, so that no two texts share a form. */
const MARK = '\u0001';

/**
 * What a database or a driver would change: NUL (PostgreSQL refuses it, libsql cuts there), lone surrogates (become
 * U+FFFD in UTF-8).
 */
const UNSAFE = /[\0\p{Surrogate}]/u;

/** Keys and ids come from senders: any string keeps its identity as a column's text, distinct ones stay distinct. */
export function columnText(text: string): string {
  return UNSAFE.test(text) || text.startsWith(MARK) ? MARK + JSON.stringify(text) : text;
}

/** The text that `columnText` encoded. */
export function fromColumnText(column: string): string {
  return column.startsWith(MARK) ? (JSON.parse(column.slice(MARK.length)) as string) : column;
}
