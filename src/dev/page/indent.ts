// Indents the JSON body of a delivery, unless more than white space would change. detail-tabs.tsx uses it.
import type { ShownBytes } from '../wire.ts';

/** Matches white space outside of strings, and whole strings (group 1), so that a replacement can keep the strings. */
const SPACE_OR_STRING = /("(?:[^"\\]|\\.)*")|\s+/g;

/**
 * The deepest nesting that is indented. The indentation of deeper JSON would be thousands of times as long as the JSON.
 */
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
 * Returns a JSON text with an indentation of two spaces. Returns undefined if the text is no JSON, is cut, or is nested
 * too deeply. Returns undefined also if more than white space would change, e.g. a repeated member, or the form of a
 * number.
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
