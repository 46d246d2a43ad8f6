import { stringEnd } from '../../codec/json-reader.ts';
import { type Budget, type Cause, type Change, createBudget, type Matches } from './case.ts';

/** A JSON text taken apart, with every number and string as it was written. */
type JsonTree =
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, JsonTree])[] }
  | { readonly kind: 'array'; readonly items: readonly JsonTree[] }
  /** A string with its quotes, a number, a literal. */
  | { readonly kind: 'token'; readonly text: string };

/** One way to write JSON, as the common serialisers do. */
interface JsonForm {
  readonly space: 'compact' | 'spaced' | 'colon' | 'indent-2' | 'indent-4' | 'indent-tab';
  readonly sorted: boolean;
  /** `kept`: as they were written. */
  readonly strings: 'kept' | 'raw' | 'ascii' | 'ascii-upper';
  /** `/` as `\/`: PHP. */
  readonly slashes: boolean;
  /** `<`, `>` and `&` as `\u003c`…: Go. */
  readonly html: boolean;
}

/** The beginning of a token. The end of a string is found by index: a pattern runs out of stack in one of many megabytes. */
const TOKEN = /\s*([[\]{},:"]|[^\s[\]{},:"]+)/y;

/** @param text valid JSON. Numbers keep their digits, which `JSON.parse` would not. */
function jsonTree(text: string): JsonTree {
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
function depthOf(text: string): number {
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
  // Most strings have no escape, and are what a serialiser would write.
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
function sortedTree(tree: JsonTree): JsonTree {
  if (tree.kind === 'token') return tree;
  if (tree.kind === 'array') return { kind: 'array', items: tree.items.map(sortedTree) };
  const members = tree.members.map(([name, value]): Member => [name, sortedTree(value)]);
  return { kind: 'object', members: sortedByName(members) };
}

/** Takes the next piece of a text. @returns false to stop. */
type Emit = (piece: string) => boolean;

/**
 * Writes a tree in a form, piece by piece, so that nothing of it need be kept.
 * @param tree sorted, where the form is.
 * @returns false where it was stopped.
 */
function writeJson(tree: JsonTree, form: JsonForm, emit: Emit, depth = 0): boolean {
  if (tree.kind === 'token') return emit(tree.text.startsWith('"') ? stringText(tree.text, form) : tree.text);
  const parts: readonly (JsonTree | Member)[] = tree.kind === 'array' ? tree.items : tree.members;
  const [open, close] = tree.kind === 'array' ? '[]' : '{}';
  if (parts.length === 0) return emit(`${open}${close}`);
  const { inner, outer, comma } = whiteSpace(form, depth);
  if (!emit(`${open}${inner}`)) return false;
  for (const [i, part] of parts.entries()) {
    if (i > 0 && !emit(comma)) return false;
    if (!writePart(part, form, emit, depth + 1)) return false;
  }
  return emit(`${outer}${close}`);
}

function writePart(part: JsonTree | Member, form: JsonForm, emit: Emit, depth: number): boolean {
  if ('kind' in part) return writeJson(part, form, emit, depth);
  const [name, value] = part;
  const colon = form.space === 'compact' ? ':' : ': ';
  return emit(stringText(name, form) + colon) && writeJson(value, form, emit, depth);
}

/** Behind the opening bracket, before the closing one, and between parts. */
function whiteSpace({ space }: JsonForm, depth: number) {
  const indent = INDENTS[space];
  const inner = indent === undefined ? '' : `\n${indent.repeat(depth + 1)}`;
  const outer = indent === undefined ? '' : `\n${indent.repeat(depth)}`;
  const comma = space === 'spaced' ? ', ' : `,${inner}`;
  return { inner, outer, comma };
}

const SPACES = Object.keys(INDENTS) as readonly JsonForm['space'][];
const STRINGS = ['kept', 'raw', 'ascii', 'ascii-upper'] as const;
const BOTH = [false, true] as const;

/** Every form: 6 ways of white space, sorted or not, 4 of strings, slashes, HTML. */
const JSON_FORMS: readonly JsonForm[] = SPACES.flatMap((space) =>
  BOTH.flatMap((sorted) =>
    STRINGS.flatMap((strings) =>
      BOTH.flatMap((slashes) => BOTH.map((html) => ({ space, sorted, strings, slashes, html }))),
    ),
  ),
);
/** What a piece of JSON costs to write, in bytes hashed: a little for itself, and by its length. */
const PIECE_COST = 16;
const CHAR_COST = 4;

const costOf = (piece: string): number => PIECE_COST + CHAR_COST * piece.length;

const SPACE_CAUSES: Readonly<Record<JsonForm['space'], readonly [Cause, string]>> = {
  compact: ['body-compact', 'without white space'],
  spaced: ['body-spaced', 'with a space after each comma and colon (as Python does)'],
  colon: ['body-spaced', 'with a space after each colon'],
  'indent-2': ['body-indented', 'indented by 2 spaces'],
  'indent-4': ['body-indented', 'indented by 4 spaces'],
  'indent-tab': ['body-indented', 'indented by tabs'],
};

const NATURAL: JsonForm = { space: 'compact', sorted: false, strings: 'kept', slashes: false, html: false };

/**
 * In what a form differs from the one in which the body arrived; each is a cause.
 * @param found undefined where its white space is not a serialiser's.
 */
function differences(signed: JsonForm, found: JsonForm | undefined): Change[] {
  const arrived = found ?? NATURAL;
  const changes: Change[] = [];
  const add = (differs: boolean, cause: Cause, how: string): void => {
    if (differs)
      changes.push({
        cause,
        says: `The digest is of the body ${how}: it was serialised again after that.`,
      });
  };
  const [cause, how] = SPACE_CAUSES[signed.space];
  add(signed.space !== found?.space, cause, how);
  add(signed.sorted && !arrived.sorted, 'body-sorted', 'with its members sorted by name');
  const ascii = signed.strings === 'ascii' || signed.strings === 'ascii-upper';
  add(
    signed.strings !== arrived.strings && ascii,
    'body-ascii-escaped',
    'with non-ASCII characters escaped (\\u00e9)',
  );
  add(
    signed.strings !== arrived.strings && !ascii,
    'body-unescaped',
    'with characters in UTF-8 where escapes (\\u00e9) arrived',
  );
  add(signed.slashes && !arrived.slashes, 'body-slash-escaped', 'with slashes escaped (\\/, as PHP does)');
  add(signed.html && !arrived.html, 'body-html-escaped', 'with <, > and & escaped (as Go does)');
  return changes;
}

const distance = (a: JsonForm, b: JsonForm): number =>
  (Object.keys(a) as (keyof JsonForm)[]).filter((name) => a[name] !== b[name]).length;

const NEWLINE: Change = {
  cause: 'body-trailing-newline',
  says: 'The digest is of the body with a line feed at its end.',
};

const AROUND: Change = {
  cause: 'body-other',
  says: 'The digest is of the body without the white space or byte order mark around it.',
};

/** A tree as a form needs it. */
type TreeFor = (form: JsonForm) => JsonTree;

/** Sorts once, and not before it is needed. */
function treesOf(text: string): TreeFor {
  const tree = jsonTree(text);
  let sorted: JsonTree | undefined;
  return (form) => (form.sorted ? (sorted ??= sortedTree(tree)) : tree);
}

/** Whether a text is written in a form. It stops at the first piece that differs, usually near the beginning. */
function isWrittenIn(text: string, form: JsonForm, treeFor: TreeFor, budget: Budget): boolean {
  let at = 0;
  const whole = writeJson(treeFor(form), form, (piece) => {
    if (!budget.take(costOf(piece)) || !text.startsWith(piece, at)) return false;
    at += piece.length;
    return true;
  });
  return whole && at === text.length;
}

/** The text in a form; undefined where the budget does not reach. */
function written(form: JsonForm, treeFor: TreeFor, budget: Budget): string | undefined {
  const pieces: string[] = [];
  const whole = writeJson(treeFor(form), form, (piece) => {
    pieces.push(piece);
    return budget.take(costOf(piece));
  });
  return whole ? pieces.join('') : undefined;
}

/** Nearest to the one that arrived first. */
const formsFrom = (arrived: JsonForm): readonly JsonForm[] =>
  JSON_FORMS.toSorted((a, b) => distance(a, arrived) - distance(b, arrived));

/** Levels of a text that is written again: to indent it costs the square of its depth. */
const MOST_DEPTH = 64;

/**
 * Finds the usual serialisation of a JSON text that was signed.
 * @param text valid JSON, without what stands around it.
 * @param ended whether a line feed came behind it.
 */
export function searchJson(
  text: string,
  ended: boolean,
  matches: Matches,
  budget: Budget,
): readonly Change[] | undefined {
  if (depthOf(text) > MOST_DEPTH) {
    budget.leaveOut();
    return undefined;
  }
  if (!budget.take(costOf(text) * 2)) return undefined;
  const treeFor = treesOf(text);
  // Which form arrived only orders the search: it may not use up what the search needs.
  const share = createBudget(budget.left() / 4, budget);
  const arrived = JSON_FORMS.find((form) => isWrittenIn(text, form, treeFor, share));
  const encoder = new TextEncoder();
  for (const form of formsFrom(arrived ?? NATURAL)) {
    const made = written(form, treeFor, budget);
    if (made === undefined) return undefined;
    for (const end of ['', '\n']) {
      if (!matches(encoder.encode(made + end))) continue;
      const changes = made === text ? [] : differences(form, arrived);
      const all = end === '' || ended ? changes : [...changes, NEWLINE];
      return all.length > 0 ? all : [AROUND];
    }
  }
  return undefined;
}
