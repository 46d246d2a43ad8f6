import { ConfigError } from '../shared/errors.ts';

/** @throws ConfigError for options that are none, or one that does not exist: misspelt, it would silently do nothing. */
export function requireOptions(who: string, options: unknown, known: Readonly<Record<string, true>>): void {
  const names = Object.keys(known);
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError(`${who}: give an object of options. Known: ${names.join(', ')}.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    throw new ConfigError(`${who}: ${unknown} is not known. Known: ${names.join(', ')}.`);
  }
}

/** Marks a text that was encoded, and texts that begin with it, so that no two texts share a form. */
const MARK = '\u0001';

/** A text that a database or a driver would change: NUL (PostgreSQL refuses it), lone surrogates (become U+FFFD in UTF-8). */
const isUnsafe = (text: string): boolean => text.includes('\0') || !text.isWellFormed();

/** Keys and ids come from senders: any string keeps its identity as a column's text, distinct ones stay distinct. */
export function columnText(text: string): string {
  return isUnsafe(text) || text.startsWith(MARK) ? MARK + JSON.stringify(text) : text;
}

/** The text that `columnText` encoded. */
export function fromColumnText(column: string): string {
  return column.startsWith(MARK) ? (JSON.parse(column.slice(MARK.length)) as string) : column;
}
