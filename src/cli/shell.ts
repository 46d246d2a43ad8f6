import { styleText } from 'node:util';
import { type Command, InvalidArgumentError } from 'commander';
import { ConfigError } from '../shared/errors.ts';
import { printableText } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** The command cannot be done as it was given: exit code 2, and `message` is the one line on stderr. */
export class UsageError extends PrintableError {
  override readonly name = 'UsageError';
  /** Stable, machine readable: always `usage_error`. */
  readonly code = 'usage_error';
}

/** Mistakes of a configuration: each is a line on stderr. */
export class MistakesError extends ConfigError {
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** Reads a page: a wrong `after` is named as the flag that it came by. @throws UsageError */
export async function pageBehind<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (!(error instanceof ConfigError) || !error.message.startsWith('after: ')) throw error;
    throw new UsageError(`--${error.message}`, { cause: error });
  }
}

/** For commander: a whole number from `min` on. */
export function whole(min: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min)) throw new InvalidArgumentError(`Expected a whole number from ${min} on.`);
    return value;
  };
}

/** Seconds since 1970 below this are seconds; from here on they are ms (it is the year 5138 in seconds). */
export const MS_FROM = 1e11;

/** Whether `Date` can have these Unix ms (ECMA-262, 21.4.1.1). */
export function isInstant(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15;
}

/**
 * An instant as people write it.
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

/** @throws UsageError unless `url` is an absolute http or https URL; a password in it is not repeated. */
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

/** Whether escape codes may be written: only on a terminal that takes them, and not where NO_COLOR is set. */
export function wantsColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** @param colour from `wantsColour`. */
export function createPaint(colour: boolean): Paint {
  return colour
    ? (style, text) => styleText(FORMATS[style], text, { validateStream: false })
    : (_, text) => text;
}

/**
 * C0 (but for line ends and the codes that `createPaint` makes: bold, red, green, yellow, gray and their ends), DEL, C1, and what turns the direction of text (Unicode 15, UAX 9).
 */
const STEERING =
  // oxlint-disable-next-line no-control-regex
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\u001b(?!\[(?:1|22|3[1239]|90)m)/g;

/** Captures, answers and bodies are others' texts: none of them may steer a terminal. */
export function harmless(text: string): string {
  return text.replace(STEERING, '?');
}

/** Others' text inside a line of ours: it may neither begin a line of its own nor set anything off as we do, nor fill a screen. */
export function inLine(text: string): string {
  return printableText(text);
}

/** A value with every text in it as `inLine` has it; for what is printed, not for `--json`. */
export function inLines<T>(value: T): T {
  if (typeof value === 'string') return inLine(value) as T;
  if (Array.isArray(value)) return value.map(inLines) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inLines(part)])) as T;
}

/** Ways in which text is set off on a terminal. */
export type Style = 'good' | 'bad' | 'warn' | 'dim' | 'bold';

/** Sets text off, or leaves it as it is where the output is not a terminal. */
export type Paint = (style: Style, text: string) => string;

/** What a verb came to: `main` prints it and ends with 0 or 1. */
export interface Report {
  /** False: exit code 1. */
  readonly ok: boolean;
  /** Printed with `--json`. */
  readonly json: unknown;
  /** Printed without; no line feed at its end. */
  readonly text: (paint: Paint) => string;
}

/** The world as a verb sees it. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Files and the user's own packages are looked for from here. */
  readonly cwd: string;
  /** Unix ms. */
  readonly now: () => number;
  readonly stdin: () => Promise<Uint8Array>;
  /** A line on stderr while the verb runs. */
  readonly notice: (line: string) => void;
}

/** Hands a verb to the process: runs it, prints its report, sets the exit code. */
export type RunVerb = (
  options: { readonly json?: boolean },
  verb: (context: CliContext) => Promise<Report>,
) => Promise<void>;

/** Adds a verb below `parent`, with `--json` and examples in its help. */
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
