import { type Matches, wireForms } from './body-wire.ts';
import type { Cause, Change, Finding } from './finding.ts';
import { JSON_FORMS, type JsonForm, jsonText, jsonTree } from './json-forms.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const FIX =
  'The receiver has to get the bytes as they came: mount it before any body parser (Express: before express.json()), and turn off what rewrites bodies in proxies. Where it does get them, the seller signs one serialisation and sends another.';

const SPACE_CAUSES: Readonly<Record<JsonForm['space'], readonly [Cause, string]>> = {
  compact: ['body-compact', 'without white space'],
  spaced: ['body-spaced', 'with a space after each comma and colon (as Python does)'],
  colon: ['body-spaced', 'with a space after each colon'],
  'indent-2': ['body-indented', 'indented by 2 spaces'],
  'indent-4': ['body-indented', 'indented by 4 spaces'],
  'indent-tab': ['body-indented', 'indented by tabs'],
};

/** In what a form differs from the one in which the body arrived; each is a cause. */
function differences(signed: JsonForm, arrived: JsonForm): Change[] {
  const changes: Change[] = [];
  const add = (differs: boolean, cause: Cause, how: string): void => {
    if (differs)
      changes.push({
        cause,
        says: `The digest is of the body ${how}: it was serialised again after that.`,
        fix: FIX,
      });
  };
  const [cause, how] = SPACE_CAUSES[signed.space];
  add(signed.space !== arrived.space, cause, how);
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

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const NATURAL: JsonForm = { space: 'compact', sorted: false, strings: 'kept', slashes: false, html: false };

/** From here on only forms that differ in two things at most are tried: a few seconds, not half a minute. */
const LARGE_BYTES = 65_536;
const MOST_DIFFERENCES = 2;

/** Nearest to the one that arrived first. */
function formsFrom(arrived: JsonForm, size: number): readonly JsonForm[] {
  const most = size < LARGE_BYTES ? Number.POSITIVE_INFINITY : MOST_DIFFERENCES;
  return JSON_FORMS.filter((form) => distance(form, arrived) <= most).toSorted(
    (a, b) => distance(a, arrived) - distance(b, arrived),
  );
}

/** The text of a body that is JSON, without what stands around it. */
function jsonOf(body: Uint8Array): string | undefined {
  try {
    const text = UTF8.decode(body)
      .replace(/^\uFEFF/, '')
      .trim();
    return isJson(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

function searchTree(text: string, ended: boolean, matches: Matches): readonly Change[] | undefined {
  const tree = jsonTree(text);
  const arrived = JSON_FORMS.find((form) => jsonText(tree, form) === text) ?? NATURAL;
  const encoder = new TextEncoder();
  for (const form of formsFrom(arrived, text.length)) {
    const made = jsonText(tree, form);
    for (const end of ['', '\n']) {
      if (!matches(encoder.encode(made + end))) continue;
      const changes = differences(form, arrived);
      const all = end === '' || ended ? changes : [...changes, NEWLINE];
      return all.length > 0 ? all : [AROUND];
    }
  }
  return undefined;
}

const NEWLINE: Change = {
  cause: 'body-trailing-newline',
  says: 'The digest is of the body with a line feed at its end.',
  fix: FIX,
};

const AROUND: Change = {
  cause: 'body-other',
  says: 'The digest is of the body without the white space or byte order mark around it.',
  fix: FIX,
};

function searchForms(body: Uint8Array, matches: Matches): readonly Change[] | undefined {
  const text = jsonOf(body);
  if (text === undefined) return undefined;
  try {
    return searchTree(text, body.at(-1) === 0x0a, matches);
  } catch (error) {
    // Nested deeper than the stack: nobody's delivery.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** What can be said where nothing matched. */
function guess(body: Uint8Array): Change {
  const text = new TextDecoder().decode(body);
  if (body.length === 0)
    return {
      cause: 'body-empty',
      says: 'The body is empty: it was read before the receiver got it, or the capture lacks it.',
      fix: FIX,
    };
  if (text.includes('\uFFFD')) {
    return {
      cause: 'body-utf8-replaced',
      says: 'The body has U+FFFD in it: bytes that are not UTF-8 were replaced when it was read as text.',
      fix: FIX,
    };
  }
  if (!isJson(text.trim())) {
    return {
      cause: 'body-cut',
      says: 'The body is no whole JSON text: it was cut short or changed.',
      fix: FIX,
    };
  }
  return {
    cause: 'body-other',
    says: 'None of the usual serialisations has this digest: the content itself was changed, numbers were rewritten (1.0 as 1), or the seller hashed something else.',
    fix: FIX,
  };
}

/**
 * Finds what the seller signed, among what parsers, serialisers, editors and charsets make of a body.
 * @returns at least one finding; not proved where nothing matched.
 */
export function searchBody(body: Uint8Array, matches: Matches, step: string): readonly Finding[] {
  const found = wireForms(body, matches) ?? searchForms(body, matches);
  const finding = (change: Change, proved: boolean): Finding => ({ step, proved, fix: FIX, ...change });
  return found?.map((change) => finding(change, true)) ?? [finding(guess(body), false)];
}
