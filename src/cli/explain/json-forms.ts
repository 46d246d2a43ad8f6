import { stringEnd } from '../../codec/json-reader.ts';

/** A JSON text taken apart, with every number and string as it was written. */
export type JsonTree =
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, JsonTree])[] }
  | { readonly kind: 'array'; readonly items: readonly JsonTree[] }
  /** A string with its quotes, a number, a literal. */
  | { readonly kind: 'token'; readonly text: string };

/** One way to write JSON, as the common serialisers do. */
export interface JsonForm {
  readonly space: 'compact' | 'spaced' | 'colon' | 'indent-2' | 'indent-4' | 'indent-tab';
  readonly sorted: boolean;
  /** `kept`: as they were written. */
  readonly strings: 'kept' | 'raw' | 'ascii' | 'ascii-upper';
  /** `/` as `\/`: PHP. */
  readonly slashes: boolean;
  /** `<`, `>` and `&` as `\u003c`…: Go. */
  readonly html: boolean;
}

/** What begins a token; a string is followed by index, as a pattern runs out of stack in one of many megabytes. */
const TOKEN = /\s*([[\]{},:"]|[^\s[\]{},:"]+)/y;

/** @param text valid JSON. Numbers keep their digits, which `JSON.parse` would not. */
export function jsonTree(text: string): JsonTree {
  let at = 0;
  const next = (): string => {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    at = TOKEN.lastIndex;
    const token = match?.[1] ?? '';
    if (token !== '"') return token;
    const from = at - 1;
    at = stringEnd(text, from) + 1;
    return text.slice(from, at);
  };
  const value = (token: string): JsonTree => {
    if (token === '{') return { kind: 'object', members: [...members()] };
    if (token === '[') return { kind: 'array', items: [...items()] };
    return { kind: 'token', text: token };
  };
  function* members(): Generator<readonly [string, JsonTree]> {
    for (let token = next(); token !== '}' && token !== ''; token = next()) {
      if (token === ',') continue;
      next();
      yield [token, value(next())];
    }
  }
  function* items(): Generator<JsonTree> {
    for (let token = next(); token !== ']' && token !== ''; token = next())
      if (token !== ',') yield value(token);
  }
  return value(next());
}

/** How deeply objects and arrays of a JSON text are nested. */
export function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = stringEnd(text, at);
    else if (char === '[' || char === '{') deepest = Math.max(deepest, ++depth);
    else if (char === ']' || char === '}') depth--;
  }
  return deepest;
}

const escaped = (char: string, upper: boolean): string => {
  const hex = char.charCodeAt(0).toString(16).padStart(4, '0');
  return `\\u${upper ? hex.toUpperCase() : hex}`;
};

function stringText(token: string, form: JsonForm): string {
  // Without an escape it is what a serialiser would write, as a rule, and most strings are without.
  let text = form.strings === 'kept' || !token.includes('\\') ? token : JSON.stringify(JSON.parse(token));
  if (form.strings === 'ascii' || form.strings === 'ascii-upper') {
    text = text.replace(/[\u007f-\uffff]/g, (char) => escaped(char, form.strings === 'ascii-upper'));
  }
  if (form.slashes) text = text.replace(/(?<!\\)\//g, '\\/');
  return form.html ? text.replace(/[<>&]/g, (char) => escaped(char, false)) : text;
}

const INDENTS: Readonly<Record<JsonForm['space'], string | undefined>> = {
  compact: undefined,
  spaced: undefined,
  colon: undefined,
  'indent-2': '  ',
  'indent-4': '    ',
  'indent-tab': '\t',
};

type Member = readonly [string, JsonTree];

/** By UTF-16 code units, as most serialisers sort. */
function sortedByName(members: readonly Member[]): readonly Member[] {
  const named = members.map((member) => ({ member, name: JSON.parse(member[0]) as string }));
  return named
    .toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
    .map(({ member }) => member);
}

/** The tree with its members sorted by name: made once, for all forms that sort. */
export function sortedTree(tree: JsonTree): JsonTree {
  if (tree.kind === 'token') return tree;
  if (tree.kind === 'array') return { kind: 'array', items: tree.items.map(sortedTree) };
  const members = tree.members.map(([name, value]): Member => [name, sortedTree(value)]);
  return { kind: 'object', members: sortedByName(members) };
}

/** Takes the next piece of a text. @returns false to stop. */
export type Emit = (piece: string) => boolean;

/**
 * Writes a tree in a form, piece by piece, so that nothing of it need be kept.
 * @param tree sorted, where the form is.
 * @returns false where it was stopped.
 */
export function writeJson(tree: JsonTree, form: JsonForm, emit: Emit, depth = 0): boolean {
  if (tree.kind === 'token') return emit(tree.text.startsWith('"') ? stringText(tree.text, form) : tree.text);
  const parts: readonly (JsonTree | Member)[] = tree.kind === 'array' ? tree.items : tree.members;
  const [open, close] = tree.kind === 'array' ? '[]' : '{}';
  if (parts.length === 0) return emit(`${open}${close}`);
  const indent = INDENTS[form.space];
  const inner = indent === undefined ? '' : `\n${indent.repeat(depth + 1)}`;
  const comma = form.space === 'spaced' ? ', ' : `,${inner}`;
  const colon = form.space === 'compact' ? ':' : ': ';
  if (!emit(`${open}${inner}`)) return false;
  for (const [i, part] of parts.entries()) {
    if (i > 0 && !emit(comma)) return false;
    const [name, value] = 'kind' in part ? [undefined, part] : part;
    if (name !== undefined && !emit(stringText(name, form) + colon)) return false;
    if (!writeJson(value, form, emit, depth + 1)) return false;
  }
  return emit(indent === undefined ? `${close}` : `\n${indent.repeat(depth)}${close}`);
}

const SPACES = Object.keys(INDENTS) as readonly JsonForm['space'][];
const STRINGS = ['kept', 'raw', 'ascii', 'ascii-upper'] as const;
const BOTH = [false, true] as const;

/** Every form: 6 ways of white space, sorted or not, 4 of strings, slashes, HTML. */
export const JSON_FORMS: readonly JsonForm[] = SPACES.flatMap((space) =>
  BOTH.flatMap((sorted) =>
    STRINGS.flatMap((strings) =>
      BOTH.flatMap((slashes) => BOTH.map((html) => ({ space, sorted, strings, slashes, html }))),
    ),
  ),
);
