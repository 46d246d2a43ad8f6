// Writes a JSON text as usual serialisers would: white space, order of members, escapes. `body-rewrites.ts` uses it to
// search for the signed body.
import { nameOf, stringEnd } from '../../codec/json-reader.ts';
import type { Cause, Change } from './explain-case.ts';

/**
 * The remaining work of a search. It is counted in bytes and not in time, so that a capture has the same answer on
 * every machine.
 */
export interface Work {
  /** The bytes that may still be written. Below 0, the search must stop, and the text written last is incomplete. */
  left: number;
}

/** The cost of writing a JSON token, in the unit of `Work`: a fixed part, and a part for each character. */
const TOKEN_COST = 16;
const CHAR_COST = 4;

/** The characters that end a number or literal. */
const ENDS = ' \t\r\n[]{},:"';

/**
 * Yields the tokens of a valid JSON text as they were written, so that numbers keep their digits. It ends early if the
 * work is used up.
 */
function* tokensOf(text: string, work: Work): Generator<string> {
  work.left -= text.length;
  for (let at = 0, end = 0; at < text.length; at = end) {
    const char = text.charAt(at);
    end = at + 1;
    if (char === '"') end = stringEnd(text, at) + 1;
    else if (!ENDS.includes(char)) while (end < text.length && !ENDS.includes(text.charAt(end))) end++;
    if (' \t\r\n'.includes(char)) continue;
    const token = text.slice(at, end);
    work.left -= TOKEN_COST + CHAR_COST * token.length;
    if (work.left < 0) return;
    yield token;
  }
}

const opens = (token: string): boolean => token === '{' || token === '[';
const closes = (token: string): boolean => token === '}' || token === ']';

/**
 * The white space that a serialiser writes: after a comma, after a colon, and for one level of indentation. Without
 * `indent`, all is on one line.
 */
type Layout = readonly [cause: Cause, how: string, comma: string, colon: string, indent?: string];

const LAYOUTS = {
  compact: ['body-compact', 'without white space', '', ''],
  spaced: ['body-spaced', 'with a space after each comma and colon (as Python does)', ' ', ' '],
  colons: ['body-spaced', 'with a space after each colon', '', ' '],
  by2: ['body-indented', 'indented by 2 spaces', '', ' ', '  '],
  by4: ['body-indented', 'indented by 4 spaces', '', ' ', '    '],
  tabs: ['body-indented', 'indented by tabs', '', ' ', '\t'],
} as const satisfies Record<string, Layout>;

/** Returns a valid JSON text with the white space of another layout. */
function laidOut(text: string, [, , comma, colon, indent]: Layout, work: Work): string {
  const line = (depth: number): string => (indent === undefined ? '' : `\n${indent.repeat(depth)}`);
  const made: string[] = [];
  let [before, depth] = ['', 0];
  for (const token of tokensOf(text, work)) {
    if (closes(token)) depth--;
    // Empty brackets have no line break between them.
    if (closes(token) ? !opens(before) : opens(before)) made.push(line(depth));
    made.push(token, token === ',' ? comma + line(depth) : token === ':' ? colon : '');
    if (opens(token)) depth++;
    if (indent !== undefined) work.left -= CHAR_COST * indent.length * depth;
    before = token;
  }
  return made.join('');
}

/** An object or array that is being read. */
interface Open {
  /** The members or items that were read completely. */
  readonly parts: string[];
  part: string;
}

const memberName = (member: string): string => nameOf(member.slice(0, stringEnd(member, 0) + 1));

/** Sorts members by UTF-16 code units, as most serialisers do. */
function byName(members: readonly string[]): string[] {
  const named = members.map((member) => ({ member, name: memberName(member) }));
  return named
    .toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
    .map(({ member }) => member);
}

/** Returns a valid JSON text with its members sorted by name, without white space. */
function sorted(text: string, work: Work): string {
  const outer: Open[] = [];
  let open: Open = { parts: [], part: '' };
  for (const token of tokensOf(text, work)) {
    if (opens(token)) {
      outer.push(open);
      open = { parts: [], part: '' };
    } else if (token === ',') {
      open.parts.push(open.part);
      open.part = '';
    } else if (closes(token)) {
      const parts = open.part === '' ? open.parts : [...open.parts, open.part];
      const whole = token === '}' ? `{${byName(parts).join(',')}}` : `[${parts.join(',')}]`;
      work.left -= whole.length;
      open = outer.pop() ?? { parts: [], part: '' };
      open.part += whole;
    } else {
      open.part += token;
    }
  }
  return open.part;
}

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
const upperEscaped = (char: string): string => escaped(char).toUpperCase().replace('U', 'u');

/** One escape in a JSON string, or two that form a surrogate pair. */
const ESCAPE = /\\(?:u[Dd][89ABab]..\\u[Dd][C-Fc-f]..|u....|.)/g;
const NON_ASCII = /[\u007f-\uffff]/g;

/** Returns the text with only those escapes that JSON requires. */
const plain = (text: string): string =>
  text.replace(ESCAPE, (escape) => JSON.stringify(nameOf(`"${escape}"`)).slice(1, -1));
const slashed = (text: string): string => plain(text).replaceAll('/', '\\/');

/**
 * The way in which a serialiser writes the characters of strings. Only strings can change, because nothing else in JSON
 * has non-ASCII characters, `/`, `<`, `>`, `&` or a backslash.
 */
type Spelling = readonly [cause: Cause, how: string, made: (text: string) => string];

const SPELLINGS = {
  kept: ['body-other', '', (text) => text],
  plain: ['body-unescaped', 'with characters in UTF-8 where escapes (\\u00e9) arrived', plain],
  ascii: [
    'body-ascii-escaped',
    'with non-ASCII characters escaped (\\u00e9, as Python does)',
    (text) => plain(text).replace(NON_ASCII, escaped),
  ],
  upper: [
    'body-ascii-escaped',
    'with non-ASCII characters escaped (\\u00E9)',
    (text) => plain(text).replace(NON_ASCII, upperEscaped),
  ],
  slashes: ['body-slash-escaped', 'with slashes escaped (\\/, as PHP does)', slashed],
  php: [
    'body-slash-escaped',
    'with slashes and non-ASCII characters escaped (\\/ and \\u00e9, as PHP does)',
    (text) => slashed(text).replace(NON_ASCII, escaped),
  ],
  html: [
    'body-html-escaped',
    'with <, > and & escaped (as Go does)',
    (text) => plain(text).replace(/[<>&\u2028\u2029]/g, escaped),
  ],
} as const satisfies Record<string, Spelling>;

/**
 * The usual serialisations, in the order in which they are tried. Those that differ only in white space come first, and
 * those that may become far larger than the body come last.
 */
const SERIALISERS: readonly (readonly [
  keyof typeof LAYOUTS,
  readonly (keyof typeof SPELLINGS)[],
  'sorted'?,
])[] = [
  ['compact', ['kept']],
  ['spaced', ['kept']],
  ['colons', ['kept']],
  ['compact', ['plain', 'ascii', 'upper', 'slashes', 'php', 'html']],
  ['spaced', ['plain', 'ascii']],
  ['compact', ['kept', 'plain', 'ascii', 'html'], 'sorted'],
  ['spaced', ['plain', 'ascii'], 'sorted'],
  ['by2', ['kept', 'plain', 'ascii', 'html']],
  ['by4', ['kept', 'plain', 'ascii', 'php']],
  ['tabs', ['kept', 'plain']],
];

/** A JSON text as one of the serialisers would have written it. */
export interface Serialised {
  readonly text: string;
  /** Returns the differences from the received text; empty if there are none. */
  readonly changes: () => readonly Change[];
}

/** Returns the differences between a serialiser's text and `text`. */
function differences(text: string, layout: Layout, spelling: Spelling, isSorted: boolean): Change[] {
  const free: Work = { left: Number.POSITIVE_INFINITY };
  const change = ([cause, how]: readonly [Cause, string, ...unknown[]]): Change => ({
    cause,
    says: `The seller signed the body ${how}: it was serialised again after that.`,
  });
  const isMoved = isSorted && sorted(text, free) !== laidOut(text, LAYOUTS.compact, free);
  return [
    ...(laidOut(text, layout, free) === text ? [] : [change(layout)]),
    ...(isMoved ? [change(['body-sorted', 'with its members sorted by name'])] : []),
    ...(spelling[2](text) === text ? [] : [change(spelling)]),
  ];
}

/**
 * Yields the texts that usual serialisers make of a JSON text. It ends when the work is used up.
 * @param text valid JSON, without surrounding white space.
 */
export function* serialisations(text: string, work: Work): Generator<Serialised> {
  for (const [space, characters, order] of SERIALISERS) {
    for (const [layout, spelling] of characters.map((name) => [LAYOUTS[space], SPELLINGS[name]] as const)) {
      const spelt = spelling[2](text);
      const made = laidOut(order ? sorted(spelt, work) : spelt, layout, work);
      if (work.left < 0) return;
      yield { text: made, changes: () => differences(text, layout, spelling, order !== undefined) };
    }
  }
}
