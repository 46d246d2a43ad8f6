const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** All that is not part of a number or a literal. */
const SIGNS = ' \t\n\r,:[]{}"';

interface Reader {
  readonly text: string;
  /** Where it goes on. */
  at: number;
}

/**
 * `JSON.parse` by another way: takes the same texts and gives the same values, in linear time. For text in which a
 * member name is written with a backslash: `JSON.parse` of V8 in Node 24 and 26 and in Deno can give such a name as
 * another that the process has parsed before. After `{"a":1,"b\\":0}` it reads `{"a":1,"b\u0063":2}` with a member `b\`.
 * Here it gets strings, numbers and literals by themselves, which it reads as they are.
 * Recurses once a level: callers have to bound the depth.
 * @throws SyntaxError that says where, and quotes nothing.
 */
export function readJson(text: string): unknown {
  const reader: Reader = { text, at: 0 };
  const value = readValue(reader);
  return next(reader) === '' ? value : fail(reader);
}

/** @param start place of its first quote. @returns place of its last, at least the text's length where it has none. */
export function stringEnd(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) at += 1;
  }
  return at;
}

/** The name that a JSON string stands for. @param literal with its quotes. */
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
  // Own members all of them, `__proto__` too; of those with one name the last, in the place of the first.
  return Object.fromEntries(members);
}

function readArray(reader: Reader): unknown[] {
  const items: unknown[] = [];
  for (let hasNext = opens(reader, ']'); hasNext; hasNext = goesOn(reader, ']'))
    items.push(readValue(reader));
  return items;
}

/** Passes over the opening bracket. @returns false where `close` follows, and then over that as well. */
function opens(reader: Reader, close: string): boolean {
  reader.at += 1;
  if (next(reader) !== close) return true;
  reader.at += 1;
  return false;
}

/** Passes over what stands behind a member or an item. @returns whether that was a comma, and not `close`. */
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
