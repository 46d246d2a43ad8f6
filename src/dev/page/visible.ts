/** A piece of a text: as it is, or the name of one character that would not be seen. */
export interface Piece {
  readonly text: string;
  readonly isHidden: boolean;
}

/**
 * Characters that hide, turn the direction, or look like a space and are none: dev.md §5.2. Line ends and tabs are shown as they are
 * where a text may have lines. A default ignorable code point is one of those that have no shape: zero-width, bidi, tags, selectors.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u;

const HIDDEN_EACH = new RegExp(HIDDEN, 'gu');

const LAYOUT = new Set(['\n', '\t']);

/** Names that a developer knows better than the number. */
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
 * Takes a text apart into what is seen and what would not be.
 * @param hasLines line ends and tabs are shown as they are; a return before a line end too.
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

/** The same as one text, for names and titles: `a⟨RLO⟩b`. */
export function visibleText(text: string): string {
  return visiblePieces(text, false)
    .map((piece) => (piece.isHidden ? `⟨${piece.text}⟩` : piece.text))
    .join('');
}
