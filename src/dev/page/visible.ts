// Makes characters visible that would be hidden, or would change the direction of text (dev.md §5.2). parts.tsx and
// model.ts use it for all untrusted text.

/** A piece of a text: visible characters, or the name of one hidden character. */
export interface Piece {
  readonly text: string;
  readonly isHidden: boolean;
}

/**
 * Matches characters that are hidden, change the direction of text, or only look like a space (dev.md §5.2). Line feeds
 * and tabs match too, and are shown as they are if a text may have lines. Default ignorable code points have no shape:
 * zero-width, bidi, tags, selectors.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u;

const HIDDEN_EACH = new RegExp(HIDDEN, 'gu');

const LAYOUT = new Set(['\n', '\t']);

/** The usual names of hidden characters. All others are named by their code point, e.g. `U+2028`. */
const NAMES: Readonly<Record<string, string>> = {
  '\0': 'NUL',
  '\t': 'TAB',
  '\n': 'LF',
  '\r': 'CR',
  '\u001B': 'ESC',
  '\u00A0': 'NBSP',
  '\u00AD': 'SHY',
  '\u200B': 'ZWSP',
  '\u200C': 'ZWNJ',
  '\u200D': 'ZWJ',
  '\u200E': 'LRM',
  '\u200F': 'RLM',
  '\u202A': 'LRE',
  '\u202B': 'RLE',
  '\u202C': 'PDF',
  '\u202D': 'LRO',
  '\u202E': 'RLO',
  '\u2066': 'LRI',
  '\u2067': 'RLI',
  '\u2068': 'FSI',
  '\u2069': 'PDI',
  '\uFEFF': 'BOM',
};

function nameOf(character: string): string {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return NAMES[character] ?? `U+${number}`;
}

/**
 * Splits a text into visible pieces, and names of hidden characters.
 * @param hasLines if true, line feeds and tabs are shown as they are.
 */
export function visiblePieces(text: string, hasLines: boolean): readonly Piece[] {
  const pieces: Piece[] = [];
  let start = 0;
  for (const { 0: character, index } of text.matchAll(HIDDEN_EACH)) {
    if (hasLines && LAYOUT.has(character)) continue;
    if (index > start) pieces.push({ text: text.slice(start, index), isHidden: false });
    pieces.push({ text: nameOf(character), isHidden: true });
    start = index + character.length;
  }
  if (start < text.length) pieces.push({ text: text.slice(start), isHidden: false });
  return pieces;
}

/**
 * Returns a text with the names of hidden characters in brackets (`a⟨RLO⟩b`), for places without elements, e.g. titles.
 */
export function visibleText(text: string): string {
  return visiblePieces(text, false)
    .map((piece) => (piece.isHidden ? `⟨${piece.text}⟩` : piece.text))
    .join('');
}
