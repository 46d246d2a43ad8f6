// Reads a `curl` command in the form in which browsers and API tools copy it. No part of the command is expanded or
// run. `readCapture` calls `readCurl`.
import { parseArgs } from 'node:util';
import { UsageError } from '../shell.ts';
import { type Capture, contentLengths, requireWhole, targetOf } from './capture.ts';

/** The escapes of Bash's `$'…'`. Browsers use this form for bodies with quotes or non-ASCII text. */
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

/** Returns the character of a hexadecimal escape. @throws UsageError if the number is no Unicode code point */
function characterOf(digits: string): string {
  const code = Number.parseInt(digits, 16);
  if (code <= 0x10ffff) return String.fromCodePoint(code);
  throw new UsageError(`\\U${digits} in the curl command is not a character`);
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

/** Functions that undo the escapes in quoted text, by the characters that open the quote. */
const QUOTES: Readonly<Record<string, (inner: string) => string>> = {
  "$'": ansiText,
  "'": (inner) => inner,
  '"': (inner) => inner.replace(/\\(?:\n|([$`"\\]))/g, '$1'),
};

/**
 * Matches one piece of a command: white space, a continued line, an escaped character, an opening quote, or other text.
 */
const PIECE = /(?<blank>\s+)|\\\r?\n|\\(?<escaped>[^])|(?<quote>\$'|['"])|(?<plain>[^\s'"\\$]+|\$)/y;

/**
 * Returns the index of the closing quote, or -1. It is a loop, because a regular expression runs out of stack for some
 * MiB of quoted text.
 */
function quoteEnd(command: string, from: number, quote: string): number {
  if (quote === "'") return command.indexOf(quote, from);
  let at = from;
  while (at < command.length && command[at] !== quote.at(-1)) at += command[at] === '\\' ? 2 : 1;
  return at < command.length ? at : -1;
}

/**
 * Returns the words of a shell command. It understands quotes, `$'…'`, backslashes and continued lines.
 * `shell-quote` cannot be used: it accepts a quote without an end, and drops quotes inside it. `shlex` cannot be used
 * either: it keeps the backslash of `"\$"` and loses `$'\U0001F600'`. Such changes would break the signature over the
 * body.
 * @throws UsageError if a quote has no end.
 */
function shellWords(command: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < command.length;) {
    const { text, isBlank, end } = pieceAt(command, at);
    if (text !== undefined) word = (word ?? '') + text;
    if (isBlank && word !== undefined) words.push(word);
    if (isBlank) word = undefined;
    at = end;
  }
  return word === undefined ? words : [...words, word];
}

interface Piece {
  /**
   * The text of the piece; undefined for white space, and for a backslash that continues the command on the next line.
   */
  readonly text: string | undefined;
  readonly isBlank: boolean;
  readonly end: number;
}

function pieceAt(command: string, at: number): Piece {
  PIECE.lastIndex = at;
  const { blank, escaped, quote, plain } = PIECE.exec(command)?.groups ?? {};
  const begin = PIECE.lastIndex;
  if (quote === undefined) return { text: escaped ?? plain, isBlank: blank !== undefined, end: begin };
  const end = quoteEnd(command, begin, quote) + 1;
  if (end === 0) throw new UsageError(`cut short: the quote at character ${at + 1} does not end`);
  return { text: QUOTES[quote]?.(command.slice(begin, end - 1)), isBlank: false, end };
}

const OPTIONS = {
  request: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  data: { type: 'string', short: 'd', multiple: true },
  'data-raw': { type: 'string', multiple: true },
  'data-binary': { type: 'string', multiple: true },
  'data-ascii': { type: 'string', multiple: true },
  json: { type: 'string', multiple: true },
  url: { type: 'string' },
  // These options are listed only so that their values are not taken for the URL.
  'user-agent': { type: 'string', short: 'A' },
  user: { type: 'string', short: 'u' },
  cookie: { type: 'string', short: 'b' },
  output: { type: 'string', short: 'o' },
  'max-time': { type: 'string', short: 'm' },
  proxy: { type: 'string', short: 'x' },
  resolve: { type: 'string' },
  'connect-to': { type: 'string' },
  'connect-timeout': { type: 'string' },
  cacert: { type: 'string' },
  retry: { type: 'string' },
} as const;

type ReadFile = (name: string) => Promise<Uint8Array>;

/**
 * The options of curl for a body. `file`: a value `@name` means the content of that file. `strip`: curl removes line
 * ends from the file's content.
 */
const DATA = [
  { name: 'data', file: true, strip: true },
  { name: 'data-ascii', file: true, strip: true },
  { name: 'data-raw', file: false, strip: false },
  { name: 'data-binary', file: true, strip: false },
  { name: 'json', file: true, strip: false },
] as const;

async function part(
  text: string,
  { file, strip }: (typeof DATA)[number],
  readFile: ReadFile,
): Promise<Buffer> {
  if (!file || !text.startsWith('@')) return Buffer.from(text, 'utf8');
  const bytes = Buffer.from(await readFile(text.slice(1)));
  return strip ? Buffer.from(bytes.toString('latin1').replace(/[\r\n\0]/g, ''), 'latin1') : bytes;
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
}

type Given = { readonly [K in keyof typeof OPTIONS]?: string | string[] };

/** Returns the request body in parts. Between the values of several options stands the `&` that curl puts there. */
async function partsOf(given: Given, readFile: ReadFile): Promise<readonly Buffer[]> {
  const parts: Buffer[] = [];
  for (const how of DATA) {
    for (const text of [given[how.name] ?? []].flat()) {
      if (parts.length > 0 && how.name !== 'json') parts.push(Buffer.from('&'));
      parts.push(await part(text, how, readFile));
    }
  }
  return parts;
}

function headersOf({ header = [], json }: Given): [string, string][] {
  const headers = [header].flat().map(headerOf);
  const typed = headers.some(([name]) => name.toLowerCase() === 'content-type');
  if (json !== undefined && !typed) headers.push(['Content-Type', 'application/json']);
  return headers;
}

/** The largest number of words in a command. The time that `parseArgs` needs grows with the square of this number. */
const MOST_WORDS = 2_000;
/**
 * The longest word with several short options, such as `-sSL`. A longer word is accepted if its first option takes a
 * value, because the rest is then that value.
 */
const MOST_FLAGS = 64;
const TAKES_VALUE: ReadonlySet<string> = new Set(
  Object.values(OPTIONS).flatMap((option) => ('short' in option ? [option.short] : [])),
);

/** Refuses a command that would take very long to parse. @throws UsageError */
function requireShort(args: readonly string[]): void {
  const isLong = (word: string): boolean =>
    word.length > MOST_FLAGS && /^-[^-]/.test(word) && !TAKES_VALUE.has(word[1] ?? '');
  if (args.length > MOST_WORDS || args.some(isLong)) {
    throw new UsageError(
      `the curl command has more than ${MOST_WORDS} words, or more than ${MOST_FLAGS} options in one word`,
    );
  }
}

/** Reads a `curl` command as browsers and API tools copy it. */
export async function readCurl(command: string, readFile: ReadFile): Promise<Capture> {
  const [, ...args] = shellWords(command.trim().replace(/^\$\s*/, ''));
  requireShort(args);
  const { values, positionals } = parseArgs({
    args,
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
  });
  const given = values as Given;
  // For an option without a value, `parseArgs` returns true.
  const bare = Object.entries(values).find(
    ([name, value]) => Object.hasOwn(OPTIONS, name) && [value].flat().includes(true),
  );
  if (bare) throw new UsageError(`cut short: the option ${bare[0]} of the curl command has no value`);
  const url = [given.url ?? [], positionals].flat().find((word) => /^https?:\/\/./i.test(word));
  if (url === undefined)
    throw new UsageError('the curl command has no URL that begins with http:// or https://');
  const parts = await partsOf(given, readFile);
  const headers = headersOf(given);
  const body = new Uint8Array(Buffer.concat(parts));
  const declared = contentLengths(headers);
  requireWhole(body, declared);
  if (parts.length === 0 && declared.length === 0)
    throw new UsageError('the curl command has no body: expected --data-raw or --data-binary');
  return {
    form: 'curl command',
    method: [given.request ?? (parts.length > 0 ? 'POST' : 'GET')].flat()[0] ?? 'POST',
    url,
    target: targetOf(url),
    headers,
    body,
    notes: [],
  };
}
