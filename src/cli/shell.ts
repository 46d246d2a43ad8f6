// Types and helpers of all commands: context, report, errors, flags, colours, and safe printing of text from other
// parties.
import { styleText } from 'node:util';
import { type Command, InvalidArgumentError } from 'commander';
import { ConfigError } from '../shared/errors.ts';
import { printableText } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** Thrown if the command cannot be done as given: exit code 2, and `message` is the one line on stderr. */
export class UsageError extends PrintableError {
  override readonly name = 'UsageError';
  /** The stable code, always `usage_error`. */
  readonly code = 'usage_error';
}

/** Thrown for a configuration with mistakes. Each of `lines` describes one mistake, and is printed on stderr. */
export class MistakesError extends ConfigError {
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/**
 * Awaits a page of a listing. If the cursor `after` is wrong, the error names the flag `--after`. @throws UsageError
 */
export async function pageBehind<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (!(error instanceof ConfigError) || !error.message.startsWith('after: ')) throw error;
    throw new UsageError(`--${error.message}`, { cause: error });
  }
}

/** Returns a parser for the value of a flag: a whole number that is at least `min`. */
export function whole(min: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min)) throw new InvalidArgumentError(`Expected a whole number from ${min} on.`);
    return value;
  };
}

/**
 * The smallest number that is read as milliseconds. Smaller numbers are read as seconds since 1970; this number would
 * be the year 5138.
 */
export const MS_FROM = 1e11;

/** True if `Date` can represent these Unix ms (ECMA-262, 21.4.1.1). */
export function isInstant(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15;
}

/**
 * Parses a time in a flag: Unix seconds, Unix ms, or ISO 8601.
 * @returns Unix ms.
 * @throws UsageError
 */
export function instant(option: string, text: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  const ms = number === undefined ? Date.parse(text) : number < MS_FROM ? number * 1000 : number;
  if (isInstant(ms)) return ms;
  throw new UsageError(
    `${option}: ${JSON.stringify(text)} is not an instant. Expected Unix seconds or ISO 8601, e.g. 2026-01-31T12:00:00Z.`,
  );
}

/** Requires an absolute http or https URL. The error message hides a password in the URL. @throws UsageError */
export function requireHttpUrl(what: string, url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  const shown = url.replace(/\/\/[^/]*@/, '//…@');
  throw new UsageError(
    `${what}: ${JSON.stringify(shown)} is not a URL. Expected an absolute one, e.g. https://buyer.example/webhooks/proto.`,
  );
}

const FORMATS: Readonly<Record<Style, 'green' | 'red' | 'yellow' | 'gray' | 'bold'>> = {
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  dim: 'gray',
  bold: 'bold',
};

/** True if escape codes may be written: the output is a terminal that supports them, and NO_COLOR is not set. */
export function wantsColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** Makes the function that styles text. @param colour from `wantsColour`. */
export function createPaint(colour: boolean): Paint {
  return colour
    ? (style, text) => styleText(FORMATS[style], text, { validateStream: false })
    : (_, text) => text;
}

/**
 * Characters that control a terminal: C0, DEL, C1, and those that change the direction of text (Unicode 15, UAX 9).
 * Excluded are line ends, and the codes of `createPaint`: bold, red, green, yellow, gray and their ends.
 */
const STEERING =
  // oxlint-disable-next-line no-control-regex
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\u001b(?!\[(?:1|22|3[1239]|90)m)/g;

/**
 * Returns the text with `?` in place of characters that control a terminal. Captures, answers and bodies come from
 * other parties.
 */
export function harmless(text: string): string {
  return text.replace(STEERING, '?');
}

/**
 * Makes text of another party safe inside a line of output. The text cannot begin a line, set a style, or fill the
 * screen.
 */
export function inLine(text: string): string {
  return printableText(text);
}

/**
 * Returns a copy of the value in which `inLine` has made all texts safe. The copy is for printing, not for `--json`.
 */
export function inLines<T>(value: T): T {
  if (typeof value === 'string') return inLine(value) as T;
  if (Array.isArray(value)) return value.map(inLines) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inLines(part)])) as T;
}

/** The styles of text on a terminal. */
export type Style = 'good' | 'bad' | 'warn' | 'dim' | 'bold';

/** Styles text, or returns it unchanged if the output is no terminal. */
export type Paint = (style: Style, text: string) => string;

/** The result of a command: `main` prints it, and ends with exit code 0 or 1. */
export interface Report {
  /** True: the exit code is 0. False: it is 1. */
  readonly ok: boolean;
  /** The value that is printed with `--json`. */
  readonly json: unknown;
  /** The text that is printed without `--json`, without a line feed at its end. */
  readonly text: (paint: Paint) => string;
}

/** The environment in which a command runs. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder in which files and the user's own packages are looked up. */
  readonly cwd: string;
  /** Unix ms. */
  readonly now: () => number;
  readonly stdin: () => Promise<Uint8Array>;
  /** Prints a line on stderr while the command runs. */
  readonly notice: (line: string) => void;
}

/** Runs a command, prints its report, and sets the exit code. */
export type RunVerb = (
  options: { readonly json?: boolean },
  verb: (context: CliContext) => Promise<Report>,
) => Promise<void>;

/** Adds a command below `parent`, with `--json` and examples in its help. */
export function addVerb(
  parent: Command,
  name: string,
  summary: string,
  examples: readonly string[],
): Command {
  return parent
    .command(name)
    .description(summary)
    .option('--json', 'print one JSON value instead of text')
    .addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ proto-webhooks ${line}`).join('\n')}`);
}
