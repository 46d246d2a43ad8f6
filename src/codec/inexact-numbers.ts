// Finds the numbers in a JSON text that a double cannot represent, with their exact values (verification.md §2.21).
// Called once for each body that is read; for most bodies a quick search shows that there are none.

import { nameOf, stringEnd } from './json-reader.ts';

/**
 * The numbers in a JSON text that a double cannot represent (9007199254740993 becomes …992), with their exact values.
 * The outer key is the object or list that contains the number, the inner key the name or index. Each value is in the
 * normal form of `exactText`.
 */
export type InexactNumbers = ReadonlyMap<object, ReadonlyMap<string | number, string>>;

/** The numbers in a text that a double cannot represent, and the paths to the first few of them. */
export interface InexactFound {
  readonly numbers: InexactNumbers;
  readonly paths: readonly (readonly (string | number)[])[];
}

/** Matches a number with sixteen digits or more, or with an exponent. All other numbers are exact in a double. */
const SUSPECT = /[[:,\s]-?(?:\d[\d.]{15}|\d[\d.]*[eE])/;

/** The maximum number of paths that a warning names. */
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
  /** The JSON string that was read last, with its quotes. Before a colon it is a member's name. */
  string: string;
}

/**
 * Finds the numbers in a text that a double cannot represent, in linear time.
 * @param value the parsed text. Only its own members are read, and nothing is changed.
 * @returns undefined if there are no such numbers.
 */
export function inexactNumbers(text: string, value: object): InexactFound | undefined {
  if (!SUSPECT.test(text)) return undefined;
  const scan: Scan = { text, whole: value, levels: [], numbers: new Map(), paths: [], string: '' };
  for (let at = 0; at < text.length;) at = step(scan, at) + 1;
  const { numbers, paths } = scan;
  return numbers.size === 0 ? undefined : { numbers, paths };
}

/**
 * Processes the string, number or sign that begins at this index.
 * @returns the last index that was processed.
 */
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
 * Returns the exact value of a number in normal form, after a `~` that no JSON text begins with. Undefined if a double
 * represents the number.
 */
function exactText(token: string): string | undefined {
  const held = Number(token);
  const exact = decimal(token);
  return Number.isFinite(held) && decimal(String(held)) === exact ? undefined : `~${exact}`;
}

const NUMBER = /^(-?)0*(\d*)(?:\.(\d+))?(?:[eE](?:\+|(-))?0*(\d*))?$/;
/**
 * The maximum number of digits of an exponent that is still computed exactly. A number with a longer exponent is kept
 * as it is written.
 */
const MAX_EXPONENT = 15;

/** Returns a number in normal form: sign, digits without leading and trailing zeros, and exponent. */
function decimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', side = '', shift = ''] = NUMBER.exec(token) ?? [];
  const digits = whole + fraction;
  // A loop finds the trailing zeros, because `/0+$/` is quadratic in digits like 1000…0001.
  let end = digits.length;
  while (end > 0 && digits.charAt(end - 1) === '0') end -= 1;
  const kept = digits.slice(0, end).replace(/^0+/, '');
  if (kept === '') return '0';
  if (shift.length > MAX_EXPONENT) return token;
  return `${sign}${kept}e${Number(`${side}0${shift}`) - fraction.length + digits.length - end}`;
}
