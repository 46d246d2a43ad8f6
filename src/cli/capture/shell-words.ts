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

/** @throws UsageError */
function characterOf(digits: string): string {
  const code = Number.parseInt(digits, 16);
  if (code <= 0x10ffff) return String.fromCodePoint(code);
  throw new UsageError(`\\U${digits} in the curl command is no character`);
}

function ansiText(raw: string): string {
  return raw.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([^]))/g,
    (_, hex?: string, short?: string, long?: string, char = '') => {
      const digits = hex ?? short ?? long;
      return digits === undefined ? (ANSI[char] ?? char) : characterOf(digits);
    },
  );
}

/** One piece of a word, with the rule by which its text is read. */
interface Piece {
  readonly pattern: RegExp;
  /** The pattern is the beginning alone: the piece goes on to this quote, but for those behind a backslash. */
  readonly until?: string;
  readonly text: (inner: string) => string;
}

/** In this order at each place; `d` flags are not needed, every pattern is sticky. */
const PIECES: readonly Piece[] = [
  { pattern: /\$'/y, until: "'", text: ansiText },
  { pattern: /'([^']*)'/y, text: (inner) => inner },
  { pattern: /"/y, until: '"', text: (inner) => inner.replace(/\\(?:\n|([$`"\\]))/g, '$1') },
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

/** By hand: a regular expression runs out of stack where a body of some MiB is quoted. */
function quoteEnd(command: string, from: number, quote: string): number {
  let at = from;
  while (at < command.length && command[at] !== quote) at += command[at] === '\\' ? 2 : 1;
  return at < command.length ? at : -1;
}

function pieceAt(command: string, at: number): { text: string; end: number; quoted: boolean } {
  for (const { pattern, until, text } of PIECES) {
    pattern.lastIndex = at;
    const match = pattern.exec(command);
    const begin = pattern.lastIndex;
    if (match && until !== undefined) {
      const end = quoteEnd(command, begin, until);
      if (end < 0) break;
      return { text: text(command.slice(begin, end)), end: end + 1, quoted: true };
    }
    if (match) return { text: text(match[1] ?? ''), end: pattern.lastIndex, quoted: /['"]$/.test(match[0]) };
  }
  throw new UsageError(`cut short: the quote at character ${at + 1} does not end`);
}
