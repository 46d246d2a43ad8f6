// Parses JSON without V8's `JSON.parse` for objects, because of a bug with escaped member names (verification.md
// §2.14).
// Called by `strict-json.ts` for text with an escaped name; other parsers use its scanners too.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Characters that are not part of a number or a literal. */
const SIGNS = ' \t\n\r,:[]{}"';

interface Reader {
  readonly text: string;
  /** Index at which reading goes on. */
  at: number;
}

/**
 * Accepts the same texts as `JSON.parse` and returns the same values, in linear time. It is for text with an
 * escaped member name. V8's `JSON.parse` in Node 24 and 26 and in Deno can return such a name as another that the
 * process parsed before. After `{"a":1,"b\\":0}` it reads `{"a":1,"b\u0063":2}` with a member `b\`. Here it only
 * gets single strings, numbers and literals, which it reads correctly.
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

/** The member name in a JSON string, unescaped. @param literal with its quotes. */
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

/** Skips the opening bracket. @returns false if `close` follows, which is then skipped too. */
function opens(reader: Reader, close: string): boolean {
  reader.at += 1;
  if (next(reader) !== close) return true;
  reader.at += 1;
  return false;
}

/** Skips the character after a member or an item. @returns true if it was a comma, false if it was `close`. */
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

/** The next character that is not white space; empty at the end of the text. */
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
