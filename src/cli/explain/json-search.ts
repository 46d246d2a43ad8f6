import type { Matches } from './body-wire.ts';
import { type Budget, createBudget } from './budget.ts';
import type { Cause, Change } from './finding.ts';
import {
  depthOf,
  JSON_FORMS,
  type JsonForm,
  jsonTree,
  type JsonTree,
  sortedTree,
  writeJson,
} from './json-forms.ts';

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
 * @param found undefined where its white space is no serialiser's.
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

/** Whether a text is written in a form: told by the first piece that differs, as a rule near its beginning. */
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
