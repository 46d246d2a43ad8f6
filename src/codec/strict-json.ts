// Strict JSON: UTF-8, bounded depth, and no member name twice in an object (verification.md §2.14, check 14).
// Called for every body of a seller, and for key documents, answers and stored rows.

import { nameOf, readJson, stringEnd } from './json-reader.ts';
import { sanitizedName } from './printable.ts';

const QUOTE_BYTE = 0x22;
const COLON = 0x3a;
const BACKSLASH_BYTE = 0x5c;
/** The only bit in which the ASCII codes of `[` and `{` differ, and those of `]` and `}`. */
const BRACKET_BIT = 0x20;
/**
 * The highest ASCII code below that of `[`, the lowest bracket. Digits, commas and white space have no higher code, so
 * one comparison skips them.
 */
const LAST_BEFORE_BRACKETS = 0x5a;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Result of `countMembers` for a JSON text. */
export interface MemberCount {
  /** Number of colons outside strings; in valid JSON that is the number of members. */
  readonly members: number;
  /** True if a member's name contains a backslash. */
  readonly escapedNames: boolean;
}

/**
 * Counts members in one pass over the bytes. Only ASCII bytes are looked for, which never occur inside a longer UTF-8
 * sequence. Strings are skipped by an inner loop, not by a function, which saves half of the time.
 * @returns undefined for text with more than `most` levels of brackets.
 */
// oxlint-disable-next-line complexity -- one loop over every byte of a body: a call for each would be half of its time
export function countMembers(bytes: Uint8Array, most: number): MemberCount | undefined {
  const end = bytes.length;
  let members = 0;
  let escapedNames = false;
  let escaped = false;
  let level = 0;
  let at = 0;
  while (at < end) {
    let byte = bytes[at] ?? 0;
    at += 1;
    if (byte === QUOTE_BYTE) {
      escaped = false;
      for (; at < end; at += 1) {
        byte = bytes[at] ?? 0;
        if (byte === QUOTE_BYTE) break;
        if (byte !== BACKSLASH_BYTE) continue;
        escaped = true;
        at += 1;
      }
      at += 1;
    } else if (byte === COLON) {
      members += 1;
      if (escaped) escapedNames = true;
    } else if (byte > LAST_BEFORE_BRACKETS) {
      byte |= BRACKET_BIT;
      if (byte === OPEN) {
        level += 1;
        if (level > most) return undefined;
      } else if (byte === CLOSE) level -= 1;
    }
  }
  return { members, escapedNames };
}

const QUOTE = '"';

/**
 * Returns the names that occur twice in one object, compared after unescaping, in the order of their second
 * occurrence. It is slower than counting members, so call it only for valid JSON that is known to have a duplicate.
 * @param limit the number of different names after which the search stops.
 */
export function duplicateNames(text: string, limit: number): readonly string[] {
  const found = new Set<string>();
  /**
   * One entry for each object or array that is open at this position: an object's names so far, or undefined for an
   * array.
   */
  const open: (Set<string> | undefined)[] = [];
  let lastString = '';
  for (let at = 0; at < text.length && found.size < limit; at += 1) {
    switch (text.charAt(at)) {
      case QUOTE: {
        const end = stringEnd(text, at);
        lastString = text.slice(at, end + 1);
        at = end;
        break;
      }
      // The string before this colon is a member's name.
      case ':': {
        const names = open.at(-1);
        const name = nameOf(lastString);
        if (names?.has(name)) found.add(name);
        names?.add(name);
        break;
      }
      case '{':
        open.push(new Set());
        break;
      case '[':
        open.push(undefined);
        break;
      case '}':
      case ']':
        open.pop();
        break;
      default:
    }
  }
  return [...found];
}

/**
 * The result for a body that is refused. `detail` is for the owner's log: it may name members, sanitized, but never
 * quotes the body.
 */
interface Refused {
  readonly ok: false;
  readonly detail: string;
  /** The repeated names, quoted and sanitized. Set only if there is no other fault. */
  readonly twice?: string;
}

type StrictJson =
  { readonly ok: true; readonly value: Record<string, unknown>; readonly text: string } | Refused;
type StrictJsonValue = { readonly ok: true; readonly value: unknown; readonly text: string } | Refused;

/** The maximum number of levels of objects and arrays, including the body itself. */
export const MAX_DEPTH = 256;

/** The maximum number of duplicate names that a log line shows (verification.md §2.30). */
const MAX_NAMES = 4;

// `ignoreBOM` keeps a BOM in the text, so that the text is refused; by default the BOM would be dropped.
const UTF8: InstanceType<typeof TextDecoder> = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Performs check 14 (verification.md §2.14). The body must be UTF-8 and a JSON object, and no object at any depth may
 * have a name twice, compared after unescaping. Takes linear time and never throws. A member called `__proto__`
 * becomes an own property like any other.
 * @param maxDepth the maximum number of levels of objects and arrays.
 */
export function parseStrictObject(bytes: Uint8Array, maxDepth: number = MAX_DEPTH): StrictJson {
  const parsed = parseStrictJson(bytes, maxDepth);
  if (!parsed.ok) return parsed;
  const { value, text } = parsed;
  return isObject(value) && !Array.isArray(value)
    ? { ok: true, value, text }
    : refuse('the body is not a JSON object');
}

/** Parses and checks as `parseStrictObject` does, but accepts any JSON value. */
export function parseStrictJson(bytes: Uint8Array, maxDepth: number = MAX_DEPTH): StrictJsonValue {
  const read = parseUnchecked(bytes, maxDepth);
  return read.ok ? checkNames(read) : read;
}

/** A parsed JSON text that is not yet checked for repeated names in an object. */
interface Unchecked {
  readonly ok: true;
  readonly value: unknown;
  readonly text: string;
  /** Number of members in the text. */
  readonly members: number;
}

/**
 * The first step of `parseStrictJson`, without the check for repeated names. For callers that do something else before
 * they call `checkNames`.
 */
export function parseUnchecked(bytes: Uint8Array, maxDepth: number = MAX_DEPTH): Unchecked | Refused {
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse('the body is not UTF-8');
  const count = countMembers(bytes, maxDepth);
  // The depth is limited before parsing, because some engines' JSON.parse recurses, as does all code that reads the
  // value later.
  if (count === undefined) return refuse(`the body nests deeper than ${maxDepth} levels`);
  const value = count.escapedNames ? parse(text, readJson) : parse(text, JSON.parse);
  if (value === undefined) {
    return refuse(text.startsWith('\uFEFF') ? 'the body begins with a BOM' : 'the body is not JSON');
  }
  return { ok: true, value, text, members: count.members };
}

/** The second step of `parseStrictJson`: checks that no object has a name twice. */
export function checkNames({ value, text, members }: Unchecked): StrictJsonValue {
  // Each colon outside strings is a member in the text. The value has fewer members if a name occurs twice, because
  // JSON.parse keeps only one of them.
  if ((isObject(value) ? ownMembers(value) : 0) !== members) return refuseDuplicates(text);
  return { ok: true, value, text };
}

function refuse(detail: string): Refused {
  return { ok: false, detail };
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Returns undefined if the text is no JSON; no JSON text gives undefined. The error is dropped, because its message
 * may quote the body.
 */
function parse(text: string, read: (text: string) => unknown): unknown {
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * Returns the number of own members of all objects in `value`; MAX_DEPTH limits the recursion. A `for-in` loop is
 * fast, because it reads an object's hidden class instead of building a list of names. Members that somebody added to
 * `Object.prototype` are not counted.
 */
function ownMembers(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) if (isObject(item)) count += ownMembers(item);
    return count;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) {
    // V8 can skip this call, but not `Object.hasOwn`, if the loop has just read the name from the hidden class.
    if (!Object.prototype.hasOwnProperty.call(members, name)) continue;
    const member = members[name];
    count += isObject(member) ? 1 + ownMembers(member) : 1;
  }
  return count;
}

function refuseDuplicates(text: string): Refused {
  const names = duplicateNames(text, Number.POSITIVE_INFINITY);
  const shown = names.slice(0, MAX_NAMES).map((name) => JSON.stringify(sanitizedName(name)));
  const more = names.length > MAX_NAMES ? [`<...${names.length - MAX_NAMES} more>`] : [];
  const twice = [...shown, ...more].join(', ');
  return { ok: false, detail: `an object in the body has a name twice: ${twice}`, twice };
}
