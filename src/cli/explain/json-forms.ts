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

const TOKEN = /[\s]*(?:([[\]{},:])|("(?:[^"\\]|\\[^])*"|[^\s[\]{},:"]+))/y;

/** @param text valid JSON. Numbers keep their digits, which `JSON.parse` would not. */
export function jsonTree(text: string): JsonTree {
  let at = 0;
  const next = (): string => {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    at = TOKEN.lastIndex;
    return match?.[1] ?? match?.[2] ?? '';
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

function wrapped(
  open: string,
  parts: readonly string[],
  close: string,
  form: JsonForm,
  depth: number,
): string {
  const indent = INDENTS[form.space];
  if (parts.length === 0) return open + close;
  if (indent === undefined) return open + parts.join(form.space === 'spaced' ? ', ' : ',') + close;
  const inner = `\n${indent.repeat(depth + 1)}`;
  return `${open}${inner}${parts.join(`,${inner}`)}\n${indent.repeat(depth)}${close}`;
}

type Member = readonly [string, JsonTree];

/** By UTF-16 code units, as most serialisers sort. */
function sortedByName(members: readonly Member[]): readonly Member[] {
  const named = members.map((member) => ({ member, name: JSON.parse(member[0]) as string }));
  return named
    .toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
    .map(({ member }) => member);
}

/** Writes a tree in a form. */
export function jsonText(tree: JsonTree, form: JsonForm, depth = 0): string {
  if (tree.kind === 'token') return tree.text.startsWith('"') ? stringText(tree.text, form) : tree.text;
  if (tree.kind === 'array') {
    const parts = tree.items.map((item) => jsonText(item, form, depth + 1));
    return wrapped('[', parts, ']', form, depth);
  }
  const colon = form.space === 'compact' ? ':' : ': ';
  const members = form.sorted ? sortedByName(tree.members) : tree.members;
  const parts = members.map(
    ([name, value]) => stringText(name, form) + colon + jsonText(value, form, depth + 1),
  );
  return wrapped('{', parts, '}', form, depth);
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
