// Parses JSON objects without V8's `JSON.parse`, which has a bug with escaped member names (verification.md §2.14).
// Called by `strict-json.ts` for text with an escaped name; other parsers use its scanners too.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The characters that end a number or a literal such as `true`. */
const SIGNS = ' \t\n\r,:[]{}"';

interface Reader {
  readonly text: string;
  /** The index in `text` of the next character to read. */
  at: number;
}

/**
 * Parses text that has an escaped member name, in linear time. It accepts the same texts as `JSON.parse`, and returns
 * the values that `JSON.parse` would return without its bug.
 *
 * The bug is in V8, i.e. in Node 24 and 26 and in Deno. In place of an escaped name, its `JSON.parse` can return a name
 * from a text that the process parsed before. After `{"a":1,"b\\":0}` it reads `{"a":1,"b\u0063":2}` with a member
 * `b\`. Here `JSON.parse` gets only single strings, numbers and literals, which it reads correctly.
 *
 * Recurses once per level, so callers must limit the depth.
 * @throws SyntaxError that names the position and quotes nothing.
 */
export function readJson(text: string): unknown {
  const reader: Reader = { text, at: 0 };
  const value = readValue(reader);
  return next(reader) === '' ? value : fail(reader);
}

/**
 * Finds the end of a JSON string.
 * @param start index of the first quote.
 * @returns index of the last quote. If there is none, at least the text's length.
 */
export function stringEnd(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) at += 1;
  }
  return at;
}

/**
 * Returns the member name in a JSON string, unescaped.
 * @param literal the string with its quotes.
 */
export const nameOf = (literal: string): string =>
  literal.includes('\\') ? String(JSON.parse(literal)) : literal.slice(1, -1);

function readValue(reader: Reader): unknown {
  switch (next(reader)) {
    case '{':
      return readObject(reader);
    case '[':
      return readArray(reader);
    case '"':
      return readString(reader);
    default:
      return readScalar(reader, wordEnd(reader));
  }
}

function readObject(reader: Reader): object {
  const members: [name: string, value: unknown][] = [];
  for (let hasNext = opens(reader, '}'); hasNext; hasNext = goesOn(reader, '}')) {
    if (next(reader) !== '"') fail(reader);
    const name = readString(reader);
    if (next(reader) !== ':') fail(reader);
    reader.at += 1;
    members.push([name, readValue(reader)]);
  }
  // All names become own members, even `__proto__`. If a name occurs several times, the last value is used, at the
  // position of the first.
  return Object.fromEntries(members);
}

function readArray(reader: Reader): unknown[] {
  const items: unknown[] = [];
  for (let hasNext = opens(reader, ']'); hasNext; hasNext = goesOn(reader, ']'))
    items.push(readValue(reader));
  return items;
}

/**
 * Skips the opening bracket.
 * @returns false if the object or list is empty: `close` follows, which is then skipped too.
 */
function opens(reader: Reader, close: string): boolean {
  reader.at += 1;
  if (next(reader) !== close) return true;
  reader.at += 1;
  return false;
}

/**
 * Skips the character after a member or an item.
 * @returns true if that character was a comma, false if it was `close`.
 */
function goesOn(reader: Reader, close: string): boolean {
  const sign = next(reader);
  if (sign !== ',' && sign !== close) fail(reader);
  reader.at += 1;
  return sign === ',';
}

function readString(reader: Reader): string {
  return readScalar(reader, stringEnd(reader.text, reader.at) + 1) as string;
}

function readScalar(reader: Reader, end: number): unknown {
  const token = reader.text.slice(reader.at, end);
  try {
    const value: unknown = JSON.parse(token);
    reader.at = end;
    return value;
  } catch {
    return fail(reader);
  }
}

/** Skips white space, and returns the next character; empty at the end of the text. */
function next(reader: Reader): string {
  let char = reader.text.charAt(reader.at);
  while (char === ' ' || char === '\n' || char === '\r' || char === '\t') {
    reader.at += 1;
    char = reader.text.charAt(reader.at);
  }
  return char;
}

function wordEnd({ text, at }: Reader): number {
  let end = at;
  while (end < text.length && !SIGNS.includes(text.charAt(end))) end += 1;
  return end;
}

function fail({ at }: Reader): never {
  throw new SyntaxError(`no JSON at character ${at}`);
}
