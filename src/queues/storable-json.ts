import { readJson } from '../codec/json-reader.ts';

/** JSON.stringify writes an escape of these only where the text has NUL or half of a surrogate pair. */
const UNSTORABLE = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g;

/**
 * PostgreSQL's `jsonb` refuses NUL and lone surrogates, which JSON allows: an event that has one could never be
 * stored. They become U+FFFD, and nothing else changes. Members of one object whose names are the same after that
 * become one, the last: `jsonb` could not tell them apart.
 */
export function storableJson(value: object): object {
  const text = JSON.stringify(value);
  const storable = text.replace(UNSTORABLE, '$1\uFFFD');
  return storable === text ? value : (readJson(storable) as object);
}
