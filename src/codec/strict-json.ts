import { duplicateNames } from './duplicate-names.ts';
import { printableName } from './printable.ts';

/** `detail` is for the owner's log: it names members at most, sanitized, and never quotes the body. */
export type StrictJson =
  | { readonly ok: true; readonly value: Record<string, unknown> }
  | { readonly ok: false; readonly detail: string };

/** Objects and arrays around the innermost value, the body itself included. */
export const MAX_DEPTH = 64;

/** How many duplicate names a log line shows (verification.md, section 2, last paragraph). */
const MAX_NAMES = 4;

// `ignoreBOM` keeps a BOM in the text, where it is no JSON; the default would swallow it.
const UTF8: InstanceType<typeof TextDecoder> = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** `[` and `{` differ in this bit alone, and so do `]` and `}`. */
const BRACKET_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/**
 * Check 14 of verification.md, section 2: UTF-8 JSON, an object, and no object in it at any depth has a name twice,
 * compared after unescaping. Linear in the size of the body, whatever it holds. Never throws. A member called
 * `__proto__` becomes an own property like any other.
 */
export function parseStrictObject(bytes: Uint8Array): StrictJson {
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse('the body is not UTF-8');
  const { members, depth } = measure(bytes);
  // Before the parse: some engines' JSON.parse recurses, and so does everything that reads the value later.
  if (depth > MAX_DEPTH) return refuse(`the body nests deeper than ${MAX_DEPTH} levels`);
  const value = parse(text);
  if (value === undefined) {
    return refuse(text.startsWith('\uFEFF') ? 'the body begins with a BOM' : 'the body is not JSON');
  }
  if (!isObject(value) || Array.isArray(value)) return refuse('the body is not a JSON object');
  // In valid JSON each colon outside strings is a member; JSON.parse keeps one of those that share a name.
  if (countMembers(value) !== members) return refuse(describeDuplicates(text));
  return { ok: true, value };
}

function refuse(detail: string): StrictJson {
  return { ok: false, detail };
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** JSON.parse without its message, which quotes the body. No JSON text parses to undefined. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** One pass over the bytes: every byte looked for is ASCII, so none occurs inside a longer UTF-8 sequence. */
function measure(bytes: Uint8Array): { readonly members: number; readonly depth: number } {
  let members = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else if (byte === COLON) members += 1;
    else if ((byte | BRACKET_BIT) === OPEN) {
      level += 1;
      if (level > depth) depth = level;
    } else if ((byte | BRACKET_BIT) === CLOSE) level -= 1;
  }
  return { members, depth };
}

/** Index of the quote that ends the string which begins at `start`; the end of the bytes where none does. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Own members of every object in `value`; recursion is bounded by MAX_DEPTH. */
function countMembers(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) if (isObject(item)) count += countMembers(item);
    return count;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members)) {
    const member = members[name];
    count += isObject(member) ? 1 + countMembers(member) : 1;
  }
  return count;
}

function describeDuplicates(text: string): string {
  const names = duplicateNames(text, MAX_NAMES).map((name) => JSON.stringify(printableName(name)));
  return `an object in the body has a name twice: ${names.join(', ')}`;
}
