import { type Matches, wireForms } from './body-wire.ts';
import { type Budget, withNote } from './budget.ts';
import type { Change, Finding } from './finding.ts';
import { searchJson } from './json-search.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const FIX =
  'The receiver has to get the bytes as they came: mount it before any body parser (Express: before express.json()), and turn off what rewrites bodies in proxies. Where it does get them, the seller signs one serialisation and sends another.';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
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

function searchForms(body: Uint8Array, matches: Matches, budget: Budget): readonly Change[] | undefined {
  const text = jsonOf(body);
  return text === undefined ? undefined : searchJson(text, body.at(-1) === 0x0a, matches, budget);
}

/** What can be said where nothing matched. */
function guess(body: Uint8Array, budget: Budget): Change {
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
  if (budget.cutShort()) {
    return {
      cause: 'body-other',
      says: 'The serialisations that were tried do not have this digest.',
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
 * @param matches charges the budget for what it hashes.
 * @returns at least one finding; not proved where nothing matched, and then it says where the search was cut short.
 */
export function searchBody(
  body: Uint8Array,
  matches: Matches,
  step: string,
  budget: Budget,
): readonly Finding[] {
  const found = wireForms(body, matches, budget) ?? searchForms(body, matches, budget);
  if (found) return found.map((change) => ({ step, proved: true, fix: FIX, ...change }));
  const change = guess(body, budget);
  return [{ step, proved: false, fix: FIX, ...change, says: withNote(change.says, budget) }];
}
