import { UsageError } from '../usage-error.ts';

/** Bash's `$'…'`, as browsers write bodies with quotes or non-ASCII text in them. */
const ANSI: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
  e: '\u001b',
  '0': '\0',
};

function ansiText(raw: string): string {
  return raw.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([^]))/g,
    (_, hex?: string, short?: string, long?: string, char = '') => {
      const digits = hex ?? short ?? long;
      return digits === undefined ? (ANSI[char] ?? char) : String.fromCodePoint(Number.parseInt(digits, 16));
    },
  );
}

/** One piece of a word, with the rule by which its text is read. */
interface Piece {
  readonly pattern: RegExp;
  readonly text: (inner: string) => string;
}

/** In this order at each place; `d` flags are not needed, every pattern is sticky. */
const PIECES: readonly Piece[] = [
  { pattern: /\$'((?:[^'\\]|\\[^])*)'/y, text: ansiText },
  { pattern: /'([^']*)'/y, text: (inner) => inner },
  { pattern: /"((?:[^"\\]|\\[^])*)"/y, text: (inner) => inner.replace(/\\(?:\n|([$`"\\]))/g, '$1') },
  { pattern: /\\\r?\n()/y, text: () => '' },
  { pattern: /\\([^])/y, text: (inner) => inner },
  { pattern: /([^\s'"\\$]+|\$)/y, text: (inner) => inner },
];

/**
 * The words of a shell command: quotes, `$'…'`, backslashes and continued lines. Nothing is expanded or run.
 * @throws UsageError where a quote does not end.
 */
export function shellWords(command: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < command.length) {
    const blank = /\s+/y;
    blank.lastIndex = at;
    if (blank.test(command)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at = blank.lastIndex;
      continue;
    }
    const piece = pieceAt(command, at);
    // A continued line is no word by itself.
    if (piece.text !== '' || piece.quoted) word = (word ?? '') + piece.text;
    at = piece.end;
  }
  if (word !== undefined) words.push(word);
  return words;
}

function pieceAt(command: string, at: number): { text: string; end: number; quoted: boolean } {
  for (const { pattern, text } of PIECES) {
    pattern.lastIndex = at;
    const match = pattern.exec(command);
    if (match) return { text: text(match[1] ?? ''), end: pattern.lastIndex, quoted: /['"]$/.test(match[0]) };
  }
  throw new UsageError(`cut short: the quote at character ${at + 1} does not end`);
}
