import type { InnerList, Item } from 'structured-headers';
import { isInnerList, parseDictionary } from 'structured-headers';

/*
 * A scanner in front of `structured-headers` (verification.md §3.2), which alone keeps the last of two labels
 * or parameters silently, gives `1.0` as the integer 1, and knows only the standard base64 alphabet. Nothing here
 * throws: what a sender sends is either a dictionary or a sentence that says why not.
 */

/** One member of a dictionary field (RFC 8941 §3.2). */
export interface Member {
  readonly label: string;
  /** The value's text as received, byte for byte: from its first character to its last parameter. */
  readonly raw: string;
  readonly value: Item | InnerList;
  /** Text of each of the value's own parameters as received, after the `=`; empty for a lone `;name`. */
  readonly rawParameters: ReadonlyMap<string, string>;
  /** Where the value is a byte sequence: the text between its colons as received, in either alphabet. */
  readonly base64?: string;
}

/**
 * Splits at `separator` outside quoted strings. In valid text a comma outside strings ends a member and a semicolon
 * starts a parameter, wherever they stand; undefined where a string does not end, and where a bare item of RFC 9651
 * begins that RFC 8941 has not: dates (`@1`), and display strings (`%"…"`), in which a backslash escapes nothing.
 */
function splitOutsideStrings(text: string, separator: ',' | ';'): string[] | undefined {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (!quoted && (char === '@' || (char === '"' && text[i - 1] === '%'))) return undefined;
    if (char === '"') quoted = !quoted;
    else if (quoted && char === '\\') i++;
    else if (!quoted && char === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return quoted ? undefined : parts;
}

/** Without optional white space at either end. A regular expression would take quadratic time on inner runs. */
function trimSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (text[start] === ' ' || text[start] === '\t') start++;
  while (end > start && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--;
  return text.slice(start, end);
}

/** A member whose value is a byte sequence, in either alphabet. */
const BYTE_SEQUENCE = /^([a-z*][a-z0-9_.*-]*=:)([A-Za-z0-9+/_=-]*):/;

function parseAlone(text: string): readonly [string, Item | InnerList] | undefined {
  try {
    const [first, ...more] = parseDictionary(text);
    return more.length === 0 ? first : undefined;
  } catch {
    return undefined;
  }
}

/** Counts and names parameters in the raw text; undefined where one stands twice, which the parsed map hides. */
function rawParametersOf(text: string, value: Item | InnerList): ReadonlyMap<string, string> | undefined {
  const pieces = splitOutsideStrings(text, ';') ?? [];
  const inner = isInnerList(value) ? value[0] : [];
  const distinct = inner.reduce((sum, [, parameters]) => sum + parameters.size, value[1].size);
  if (pieces.length - 1 !== distinct) return undefined;
  // Those of the components of an inner list come first in the text, those of the value itself last.
  const own = value[1].size === 0 ? [] : pieces.slice(-value[1].size).map(trimSpace);
  return new Map(
    own.map((piece) => {
      const at = piece.indexOf('=');
      return at < 0 ? [piece, ''] : [piece.slice(0, at), piece.slice(at + 1)];
    }),
  );
}

function readMember(text: string): Member | string {
  const bytes = BYTE_SEQUENCE.exec(text);
  const [whole, start = '', base64 = ''] = bytes ?? [''];
  const standard = base64.replaceAll('-', '+').replaceAll('_', '/');
  const parsed = parseAlone(bytes ? `${start}${standard}:${text.slice(whole.length)}` : text);
  if (!parsed) return 'is no dictionary of structured fields';
  const [label, value] = parsed;
  const rawParameters = rawParametersOf(text, value);
  if (!rawParameters) return 'has a parameter twice';
  const raw = text.slice(label.length + 1);
  return bytes ? { label, raw, value, rawParameters, base64 } : { label, raw, value, rawParameters };
}

/** Members of one dictionary: senders have one or two, and each costs a parser's run (verification.md §2.1). */
const MAX_MEMBERS = 32;

/**
 * Reads a dictionary field (RFC 8941 §4.2.2) in which no label and no parameter stands twice.
 * @param field all lines of the field, joined with `, `.
 * @returns its members by label, or what is wrong with it: a predicate whose subject is the field. Never throws.
 */
export function readDictionary(field: string): ReadonlyMap<string, Member> | string {
  const texts = splitOutsideStrings(field, ',');
  if (!texts) return 'has a string that does not end, or an item that RFC 8941 does not know';
  if (texts.length > MAX_MEMBERS) return `has more than ${MAX_MEMBERS} members`;
  const members = new Map<string, Member>();
  for (const text of texts) {
    const member = readMember(trimSpace(text));
    if (typeof member === 'string') return member;
    if (members.has(member.label)) return 'has a label twice';
    members.set(member.label, member);
  }
  return members;
}

/** Whether a member is an inner list, as every member of `Signature-Input` is (RFC 9421 §4.1). */
export function innerListOf(member: Member): InnerList | undefined {
  return isInnerList(member.value) ? member.value : undefined;
}
