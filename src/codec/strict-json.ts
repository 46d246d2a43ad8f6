import { readJson, stringEnd } from './json-reader.ts';
import { type CountMembers, countMembers, simdCounter } from './member-count.ts';
import { printableName } from './printable.ts';

const QUOTE = '"';
const BACKSLASH = '\\';

/**
 * Names that occur twice in one object, after unescaping, in order of their second occurrence. Slower than counting:
 * for text that is known to be valid JSON with a duplicate.
 * @param limit stop after so many different names.
 */
export function duplicateNames(text: string, limit: number): readonly string[] {
  const found = new Set<string>();
  /** The names of each open object; undefined for an array. */
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
      // A colon outside strings: the string before it was a name.
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

/** `literal` is a JSON string with its quotes. */
function nameOf(literal: string): string {
  return literal.includes(BACKSLASH) ? String(JSON.parse(literal)) : literal.slice(1, -1);
}

/** `detail` is for the owner's log: it names members at most, sanitized, and never quotes the body. */
interface Refused {
  readonly ok: false;
  readonly detail: string;
  /** Where a name is there twice and nothing else is wrong: those names, quoted and sanitized. */
  readonly twice?: string;
}

type StrictJson = { readonly ok: true; readonly value: Record<string, unknown> } | Refused;
type StrictJsonValue = { readonly ok: true; readonly value: unknown } | Refused;

/** Objects and arrays around the innermost value, the body itself included. */
export const MAX_DEPTH = 256;

/** How many duplicate names a log line shows (verification.md §2.30). */
const MAX_NAMES = 4;

const DEEP = `the body nests deeper than ${MAX_DEPTH} levels`;

// `ignoreBOM` keeps a BOM in the text, where it is not JSON; the default would swallow it.
const UTF8: InstanceType<typeof TextDecoder> = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const countFast: CountMembers | undefined = /* @__PURE__ */ simdCounter();

/**
 * Check 14 (verification.md §2.14): UTF-8 JSON, an object, and no object in it at any depth has a name twice,
 * compared after unescaping. Linear in the size of the body, whatever it holds. Never throws. A member called
 * `__proto__` becomes an own property like any other.
 */
export function parseStrictObject(bytes: Uint8Array): StrictJson {
  const parsed = parseStrictJson(bytes);
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  return isObject(value) && !Array.isArray(value)
    ? { ok: true, value }
    : refuse('the body is not a JSON object');
}

/** The same for any JSON value. */
export function parseStrictJson(bytes: Uint8Array): StrictJsonValue {
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse('the body is not UTF-8');
  const count = countFast?.(bytes, MAX_DEPTH) ?? countMembers(bytes, MAX_DEPTH);
  // Before the parse: some engines' JSON.parse recurses, and so does everything that reads the value later.
  if (count === undefined) return refuse(DEEP);
  const value = count.escapedNames ? parse(text, readJson) : parse(text, JSON.parse);
  if (value === undefined) return refuse(describeNoJson(bytes, text));
  // In valid JSON each colon outside strings is a member; JSON.parse keeps one of those that share a name.
  if ((isObject(value) ? ownMembers(value) : 0) !== count.members) return refuseDuplicates(text);
  return { ok: true, value };
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

/** Without the message of what is thrown, which may quote the body. No JSON text parses to undefined. */
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
 * Own members of every object in `value`; recursion is bounded by MAX_DEPTH. A `for-in` loop reads an object's shape
 * instead of making a list of its names; whatever somebody added to `Object.prototype` is no member.
 */
function ownMembers(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) if (isObject(item)) count += ownMembers(item);
    return count;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) {
    // V8 leaves this very call out where the loop has just read the name from the shape; not `Object.hasOwn`.
    if (!Object.prototype.hasOwnProperty.call(members, name)) continue;
    const member = members[name];
    count += isObject(member) ? 1 + ownMembers(member) : 1;
  }
  return count;
}

/** The two counters agree on valid JSON alone; the words of a refusal must not depend on which one counted. */
function describeNoJson(bytes: Uint8Array, text: string): string {
  if (countMembers(bytes, MAX_DEPTH) === undefined) return DEEP;
  return text.startsWith('\uFEFF') ? 'the body begins with a BOM' : 'the body is not JSON';
}

function refuseDuplicates(text: string): Refused {
  const names = duplicateNames(text, MAX_NAMES).map((name) => JSON.stringify(printableName(name)));
  const twice = names.join(', ');
  return { ok: false, detail: `an object in the body has a name twice: ${twice}`, twice };
}
