// Encodes senders' text for a database column, and checks the names of a store's options.
// Called by every store of this package.
import { ConfigError } from '../shared/errors.ts';

/**
 * Checks the names of options: a misspelt option would otherwise be ignored.
 *
 * @throws ConfigError for options that are no object, or have a name that does not exist.
 */
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

/**
 * The first character of an encoded text. A text that begins with this character is encoded too, so that no two texts
 * have the same encoded form.
 */
const MARK = '\u0001';

/**
 * True for a text that a database or a driver would refuse or change. PostgreSQL refuses NUL. Lone surrogates become
 * U+FFFD in UTF-8.
 */
const isUnsafe = (text: string): boolean => text.includes('\0') || !text.isWellFormed();

/**
 * Encodes a key or id for a column. Keys and ids come from senders and may be any text. Different texts stay different.
 */
export function columnText(text: string): string {
  return isUnsafe(text) || text.startsWith(MARK) ? MARK + JSON.stringify(text) : text;
}

/** Returns the text that `columnText` encoded. */
export function fromColumnText(column: string): string {
  return column.startsWith(MARK) ? (JSON.parse(column.slice(MARK.length)) as string) : column;
}
