// Indents the body of a delivery, if that changes nothing but white space. detail-tabs.tsx uses it.
import type { ShownBytes } from '../wire.ts';

/** Matches white space outside of strings, or a string, which is kept. */
const SPACE_OR_STRING = /("(?:[^"\\]|\\.)*")|\s+/g;

/** The deepest nesting that is indented. The indent of a deeper text would take thousands of times its own length. */
const MOST_DEEP = 100;

function isDeep(text: string): boolean {
  let depth = 0;
  for (const [mark] of text.replaceAll(SPACE_OR_STRING, '').matchAll(/[[\]{}]/g)) {
    depth += mark === '[' || mark === '{' ? 1 : -1;
    if (depth > MOST_DEEP) return true;
  }
  return false;
}

/**
 * A JSON text with an indent of two. Undefined if the text is no JSON, is cut, or is nested deeply. Undefined also if it would change by
 * more than white space, e.g. if a member is there twice, or a number in another form.
 */
export function indented({ encoding, text, cut }: ShownBytes): string | undefined {
  if (encoding !== 'utf8' || cut || isDeep(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isSame = text.replaceAll(SPACE_OR_STRING, '$1') === JSON.stringify(value);
    return isSame ? JSON.stringify(value, undefined, 2) : undefined;
  } catch {
    return undefined;
  }
}
