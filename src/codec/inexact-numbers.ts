// Finds the numbers in a JSON text that a double cannot represent, with their exact values (verification.md §2.21).
// Called once for each body that is read; for most bodies a quick search shows that there are none.

import { nameOf, stringEnd } from './json-reader.ts';

/** Example: 9007199254740993 becomes …992. */

/**
 * The exact values, each in one normal form, by the object or list that contains the number, and then by name or
 * index.
 */
export type InexactNumbers = ReadonlyMap<object, ReadonlyMap<string | number, string>>;

/** The inexact numbers in a text, and the paths to the first few. */
export interface InexactFound {
  readonly numbers: InexactNumbers;
  readonly paths: readonly (readonly (string | number)[])[];
}

/**
 * Matches a number with sixteen digits or more, or with an exponent. A double represents every other number
 * exactly.
 */
const SUSPECT = /[[:,\s]-?(?:\d[\d.]{15}|\d[\d.]*[eE])/;

/** Most paths that a warning names. */
const MAX_PATHS = 5;

interface Level {
  readonly holder: Readonly<Record<string | number, unknown>>;
  key: string | number;
}

interface Scan {
  readonly text: string;
  readonly whole: object;
  readonly levels: Level[];
  readonly numbers: Map<object, Map<string | number, string>>;
  readonly paths: (string | number)[][];
  /** The last string, with its quotes. */
  string: string;
}

/**
 * Finds the inexact numbers in a text, in linear time.
 * @param value the parsed text. Only its own members are read, and nothing is changed.
 * @returns undefined if there are none.
 */
export function inexactNumbers(text: string, value: object): InexactFound | undefined {
  if (!SUSPECT.test(text)) return undefined;
  const scan: Scan = { text, whole: value, levels: [], numbers: new Map(), paths: [], string: '' };
  for (let at = 0; at < text.length;) at = step(scan, at) + 1;
  const { numbers, paths } = scan;
  return numbers.size === 0 ? undefined : { numbers, paths };
}

/** Processes the text at one position. @returns the last index that was processed. */
function step(scan: Scan, at: number): number {
  const level = scan.levels.at(-1);
  const char = scan.text.charAt(at);
  switch (char) {
    case '"': {
      const end = stringEnd(scan.text, at);
      scan.string = scan.text.slice(at, end + 1);
      return end;
    }
    case ':':
      if (level) level.key = nameOf(scan.string);
      return at;
    case ',':
      if (typeof level?.key === 'number') level.key += 1;
      return at;
    case '{':
    case '[': {
      const holder = (level ? level.holder[level.key] : scan.whole) as Level['holder'];
      scan.levels.push({ holder, key: char === '[' ? 0 : '' });
      return at;
    }
    case '}':
    case ']':
      scan.levels.pop();
      return at;
    default:
      return char === '-' || (char >= '0' && char <= '9') ? number(scan, at) : at;
  }
}

const REST = /[\d.eE+-]+/y;

function number(scan: Scan, at: number): number {
  REST.lastIndex = at;
  const token = REST.exec(scan.text)?.[0] ?? '';
  const level = scan.levels.at(-1);
  const exact = level && exactText(token);
  if (level && exact !== undefined) {
    const { holder, key } = level;
    const held = scan.numbers.get(holder) ?? new Map<string | number, string>();
    scan.numbers.set(holder, held.set(key, exact));
    if (scan.paths.length < MAX_PATHS) scan.paths.push(scan.levels.map((one) => one.key));
  }
  return at + token.length - 1;
}

/**
 * The normal form of a number, which differs from every other JSON text. Undefined if a double represents the
 * number.
 */
function exactText(token: string): string | undefined {
  const held = Number(token);
  const exact = decimal(token);
  return Number.isFinite(held) && decimal(String(held)) === exact ? undefined : `~${exact}`;
}

const NUMBER = /^(-?)0*(\d*)(?:\.(\d+))?(?:[eE](?:\+|(-))?0*(\d*))?$/;
/**
 * Most digits of an exponent that a double represents exactly. For longer ones, numbers are equal only if their
 * texts are.
 */
const MAX_EXPONENT = 15;

/** The normal form: sign, digits without leading and trailing zeros, and exponent. */
function decimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', side = '', shift = ''] = NUMBER.exec(token) ?? [];
  const digits = whole + fraction;
  // A loop, because `/0+$/` is quadratic in digits like 1000…0001.
  let end = digits.length;
  while (end > 0 && digits.charAt(end - 1) === '0') end -= 1;
  const kept = digits.slice(0, end).replace(/^0+/, '');
  if (kept === '') return '0';
  if (shift.length > MAX_EXPONENT) return token;
  return `${sign}${kept}e${Number(`${side}0${shift}`) - fraction.length + digits.length - end}`;
}
