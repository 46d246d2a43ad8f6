import { styleText } from 'node:util';
import type { Paint, Style } from './shell.ts';

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

// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Others' text inside a line of ours: it may neither begin a line of its own nor set anything off as we do. */
export function inLine(text: string): string {
  return text.replace(CONTROLS, '?');
}

/** A value with every text in it as `inLine` has it; for what is printed, not for `--json`. */
export function inLines<T>(value: T): T {
  if (typeof value === 'string') return inLine(value) as T;
  if (Array.isArray(value)) return value.map(inLines) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inLines(part)])) as T;
}
