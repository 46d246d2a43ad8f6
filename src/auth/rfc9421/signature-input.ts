// Parses `Signature-Input`, and other dictionary fields, strictly (verification.md §2.1, §3.2, §3.3).
// A scanner runs before `structured-headers`. That library silently keeps the last of two labels or parameters,
// reads `1.0` as 1, and knows only standard base64.
// Nothing here throws; if the input is not valid, the result is a text that says why.

import { type InnerList, isInnerList, type Item, parseDictionary } from 'structured-headers';
import { type Refusal, refused } from '../../shared/outcome.ts';
import { REQUIRED_COMPONENTS } from './signature-base.ts';

/** One member of a dictionary field (RFC 8941 §3.2). */
export interface Member {
  readonly label: string;
  /** The value as received, byte for byte, from its first character to its last parameter. */
  readonly raw: string;
  readonly value: Item | InnerList;
  /** For each parameter of the value itself, the text after `=` as received; empty for `;name` without a value. */
  readonly rawParameters: ReadonlyMap<string, string>;
  /** For a byte sequence, the text between the colons as received, in either base64 alphabet. */
  readonly base64?: string;
}

/**
 * Splits the text at `separator` outside quoted strings. In valid text, such a comma ends a member and such a semicolon
 * starts a parameter. Undefined if a string does not end. Also undefined for dates (`@1`) and display strings (`%"…"`),
 * which only RFC 9651 knows: a backslash in them escapes nothing.
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

/**
 * Removes optional white space at both ends. A regular expression would take quadratic time on inner runs.
 */
function trimSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (text[start] === ' ' || text[start] === '\t') start++;
  while (end > start && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--;
  return text.slice(start, end);
}

/** Matches a member whose value is a byte sequence, in either alphabet. */
const BYTE_SEQUENCE = /^([a-z*][a-z0-9_.*-]*=:)([A-Za-z0-9+/_=-]*):/;

function parseAlone(text: string): readonly [string, Item | InnerList] | undefined {
  try {
    const [first, ...rest] = parseDictionary(text);
    return rest.length === 0 ? first : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the text of each parameter of the value. Undefined if a parameter occurs twice, because `value` contains only
 * the last of the two.
 */
function rawParametersOf(text: string, value: Item | InnerList): ReadonlyMap<string, string> | undefined {
  const pieces = splitOutsideStrings(text, ';') ?? [];
  const inner = isInnerList(value) ? value[0] : [];
  const distinct = inner.reduce((sum, [, parameters]) => sum + parameters.size, value[1].size);
  if (pieces.length - 1 !== distinct) return undefined;
  // The parameters of an inner list's components come first in the text, then those of the value itself.
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
  if (!parsed) return 'is not a dictionary of structured fields';
  const [label, value] = parsed;
  const rawParameters = rawParametersOf(text, value);
  if (!rawParameters) return 'has a parameter twice';
  const raw = text.slice(label.length + 1);
  return bytes ? { label, raw, value, rawParameters, base64 } : { label, raw, value, rawParameters };
}

/**
 * The largest number of members of one dictionary. RFC 8941 §3.2 demands that parsers accept at least this number
 * (verification.md §2.1).
 */
const MAX_MEMBERS = 1_024;

/**
 * Parses a dictionary field (RFC 8941 §4.2.2). No label and no parameter may occur twice.
 * @param field all lines of the field, joined with `, `.
 * @returns the members by label, or the mistake as a text that follows the field's name, e.g. `has a label twice`.
 * Never throws.
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

/**
 * Returns the inner list of a member. Undefined if the member is none, although every member of `Signature-Input` must
 * be one (RFC 9421 §4.1).
 */
function innerListOf(member: Member): InnerList | undefined {
  return isInnerList(member.value) ? member.value : undefined;
}

const START = 'sig1=(';

/** The required components in the order of the profile's own examples, which most senders use. */
const FAST_LIST = REQUIRED_COMPONENTS.map((name) => `"${name}"`).join(' ');
const FAST_START = `${START}${FAST_LIST})`;

const PLAIN_LIST = /^"[a-z0-9@-]+"(?: "[a-z0-9@-]+")*$/;

/**
 * Parses the usual form, in a tenth of the full parser's time. Returns undefined for any other form, which the full
 * parser then parses. The usual form has only the label `sig1`, components without parameters, and the six
 * parameters in any order. Each parameter occurs once, without escapes or white space, and there is nothing else.
 */
export function parseSignatureInputFast(field: string): SignatureInput | undefined {
  const isRequired = field.startsWith(FAST_START);
  const close = isRequired ? FAST_START.length - 1 : field.indexOf(')');
  const components = isRequired ? REQUIRED_COMPONENTS : plainList(field, close);
  const parameters = readParameters(field, close + 1);
  if (components === undefined || parameters === undefined) return undefined;
  return { kind: 'signature-input', components, parameters, raw: field.slice(START.length - 1) };
}

function plainList(field: string, close: number): readonly string[] | undefined {
  if (!field.startsWith(START)) return undefined;
  const list = field.slice(START.length, close);
  return PLAIN_LIST.test(list) ? list.slice(1, -1).split('" "') : undefined;
}

type Parameters = Required<SignatureInput['parameters']>;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface ParameterForm {
  readonly name: keyof Parameters;
  /** The text from the semicolon to the beginning of the value, e.g. `created=`. */
  readonly start: string;
  /** The bit that stands for this parameter in the set of parameters that were found. */
  readonly bit: number;
}

const NAMES = ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'] as const;

/** The forms of the six parameters, by the code of the name's first letter, which is different for every name. */
const PLACES: ReadonlyMap<number, ParameterForm> = new Map(
  NAMES.map((name, index) => {
    const start = name === 'created' || name === 'expires' ? `${name}=` : `${name}="`;
    return [name.charCodeAt(0), { name, start, bit: 1 << index }];
  }),
);
const ALL = (1 << PLACES.size) - 1;

const SEMICOLON = 0x3b;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Reads the six parameters. Undefined if one is missing, repeated, unknown or has escapes, or if there is other
 * text between them.
 */
function readParameters(field: string, start: number): Parameters | undefined {
  const found: Mutable<Parameters> = { created: 0, expires: 0, nonce: '', keyid: '', alg: '', tag: '' };
  let seen = 0;
  let at = start;
  while (at < field.length) {
    const place = PLACES.get(field.charCodeAt(at + 1));
    if (field.charCodeAt(at) !== SEMICOLON || !place || (seen & place.bit) !== 0) return undefined;
    if (!field.startsWith(place.start, at + 1)) return undefined;
    seen |= place.bit;
    const from = at + 1 + place.start.length;
    const { name } = place;
    if (name === 'created' || name === 'expires') {
      at = digitsEnd(field, from);
      if (at < 0) return undefined;
      found[name] = Number(field.slice(from, at));
    } else {
      const end = stringEnd(field, from);
      if (end < 0) return undefined;
      found[name] = field.slice(from, end);
      at = end + 1;
    }
  }
  return seen === ALL ? found : undefined;
}

/** Longest integer in digits (RFC 8941 §3.3.1). */
const MAX_DIGITS = 15;

/** Returns the index after the digits that begin at `from`. -1 if there are no digits, or too many. */
function digitsEnd(field: string, from: number): number {
  let at = from;
  while (isDigit(field.charCodeAt(at))) at += 1;
  return at === from || at - from > MAX_DIGITS ? -1 : at;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/**
 * Returns the index of the closing quote of a string. Returns -1 if there is none, or if the string has escapes or
 * unprintable or non-ASCII characters.
 */
function stringEnd(field: string, from: number): number {
  for (let at = from; at < field.length; at += 1) {
    const code = field.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH || code < 0x20 || code > 0x7e) return -1;
  }
  return -1;
}

/** The only label that is used; signatures with other labels are ignored (verification.md §2.16). */
export const LABEL = 'sig1';

/**
 * The parameters of a signature (times, nonce, key id, algorithm, tag) as `parseSignatureInput` reads them. Each is
 * absent if the sender left it out.
 */
export interface SignatureParameters {
  /** The time of signing, Unix seconds. */
  readonly created?: number;
  /** The end of validity, Unix seconds. */
  readonly expires?: number;
  readonly nonce?: string;
  readonly keyid?: string;
  readonly alg?: string;
  readonly tag?: string;
}

/**
 * The contents of a `Signature-Input` field under the label `sig1`, as `parseSignatureInput` returns them: the
 * covered components and the parameters.
 */
export interface SignatureInput {
  readonly kind: 'signature-input';
  /**
   * The covered components, in their order: bare names, e.g. `@method`. A component with parameters is quoted and
   * followed by their names, e.g. `"x";sf`.
   */
  readonly components: readonly string[];
  readonly parameters: SignatureParameters;
  /**
   * The inner list with its parameters as received, which is the value of `@signature-params` in the signature base.
   */
  readonly raw: string;
}

type BareType = 'integer' | 'string';

const TYPES: Record<keyof SignatureParameters, BareType> = {
  created: 'integer',
  expires: 'integer',
  nonce: 'string',
  keyid: 'string',
  alg: 'string',
  tag: 'string',
};

/**
 * Checks of a parameter's type. The library returns 1 for `1.0`, so the raw text is needed to distinguish an
 * integer (RFC 8941 §3.3.1) from a decimal.
 */
const IS: Record<BareType, (value: unknown, raw: string) => boolean> = {
  integer: (value, raw) => typeof value === 'number' && /^-?[0-9]{1,15}$/.test(raw),
  string: (value) => typeof value === 'string',
};

const malformed = (detail: string): Refusal =>
  refused('webhook_signature_header_malformed', `Signature-Input ${detail}.`, 1);

/**
 * Returns the name of a component. Names of its parameters are appended without values, because check 6 refuses a
 * component with parameters anyway.
 */
function readComponent([name, parameters]: Item): string | undefined {
  if (typeof name !== 'string') return undefined;
  const tail = [...parameters.keys()].map((parameter) => `;${parameter}`);
  return tail.length === 0 ? name : `"${name}"${tail.join('')}`;
}

function readInput(member: Member): SignatureInput | Refusal {
  const list = innerListOf(member);
  if (!list) return malformed('has a member that is not an inner list');
  const components: string[] = [];
  for (const item of list[0]) {
    const component = readComponent(item);
    if (component === undefined) return malformed('covers something that is not a string');
    components.push(component);
  }
  for (const [name, type] of Object.entries(TYPES)) {
    const value = list[1].get(name);
    if (value !== undefined && !IS[type](value, member.rawParameters.get(name) ?? '')) {
      return malformed(`has a parameter ${name} that is not of type ${type}`);
    }
  }
  const known = [...list[1]].filter(([name]) => Object.hasOwn(TYPES, name));
  const parameters: SignatureParameters = Object.fromEntries(known);
  return { kind: 'signature-input', components, parameters, raw: member.raw };
}

/** Parses any valid `Signature-Input`, in every form. */
export function parseSignatureInputFull(field: string): SignatureInput | Refusal {
  const members = readDictionary(field);
  if (typeof members === 'string') return malformed(members);
  for (const member of members.values()) {
    if (!innerListOf(member)) return malformed('has a member that is not an inner list');
  }
  const member = members.get(LABEL);
  return member ? readInput(member) : malformed(`lacks the label ${LABEL}`);
}

/**
 * Reads the `Signature-Input` field of a request: the covered components and the parameters under the label `sig1`.
 * The field must be a dictionary of inner lists without repeated labels or parameters. `created` and `expires` must
 * be integers, the other parameters strings.
 *
 * It does not require any parameter or check its value; `verifySignature` does.
 * @param field the field's value; join several lines with `, `.
 * @returns the input, or a refusal `webhook_signature_header_malformed`. Never throws.
 * @example
 * ```ts
 * import { parseSignatureInput } from 'proto-webhooks/rfc9421';
 *
 * const input = parseSignatureInput('sig1=("@method");created=1700000000;keyid="key-1"');
 * if (input.kind === 'signature-input') console.log(input.components, input.parameters.keyid);
 * ```
 */
export function parseSignatureInput(field: string): SignatureInput | Refusal {
  return parseSignatureInputFast(field) ?? parseSignatureInputFull(field);
}
