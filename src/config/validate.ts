// Checks single options: names, numbers, flags, texts, loggers (admission.md §2.12). Called wherever the package takes
// options, so that every mistake has one form: a ConfigError that says what to write.
import type { Logger } from '../shared/alarms.ts';
import { ConfigError, textOf } from '../shared/errors.ts';

/**
 * Requires an object with known members only, because a misspelt member would silently do nothing.
 * @param instead maps some unknown names to the text to write, which the error then gives instead of the known names.
 * @throws ConfigError that lists the known names.
 */
export function onlyKnown(
  where: string,
  options: unknown,
  known: object,
  instead: Readonly<Record<string, string>> = {},
): void {
  const names = Object.keys(known);
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new ConfigError(`${where}: is not an object. Known: ${names.join(', ')}.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined && Object.hasOwn(instead, unknown)) {
    throw new ConfigError(`${where}: ${unknown} is not known. Write ${instead[unknown]}.`);
  }
  if (unknown !== undefined) {
    throw new ConfigError(`${where}: ${unknown} is not known. Known: ${names.join(', ')}.`);
  }
}

/** Returns the mistake of an option that is absent or has the wrong type: `missing`, or e.g. `is not an array`. */
export const describeMissing = (value: unknown, wanted: string): string =>
  value === undefined || value === null || value === '' ? 'missing' : `is not ${wanted}`;

/** Returns a wrong value for an error message, with its type if it only looks like a number: `"5000" is a string,`. */
export function notANumber(value: unknown): string {
  if (typeof value === 'string') return `${JSON.stringify(value)} is a string,`;
  return typeof value === 'bigint' ? `${value} is a bigint,` : `${textOf(value)} is`;
}

/** Reads a whole number. @throws ConfigError unless `value` (or `fallback`) is one within the bounds. */
export function wholeNumber(
  name: string,
  value: number | undefined,
  fallback: number,
  min = 1,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  const number = value ?? fallback;
  if (!Number.isSafeInteger(number) || number < min || number > max) {
    throw new ConfigError(`${name}: ${notANumber(number)} not a whole number from ${min} to ${max}.`);
  }
  return number;
}

/** The longest time of a timer, ms, because timers hold 31 bits. */
export const MAX_TIMER_MS: number = 2_147_483_647;

/**
 * Reads a flag. @throws ConfigError for anything but `true`, `false` or undefined, because the string 'false' counts as
 * true in JavaScript.
 */
export function flag(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw new ConfigError(`${name}: ${JSON.stringify(value)} is not true or false.`);
}

/** Reads a string. @throws ConfigError if it is empty or no string. */
export function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new ConfigError(`${name}: ${JSON.stringify(value) ?? typeof value} is not a non-empty string.`);
}

/** Requires a secret that is read from the environment. @throws ConfigError if it is undefined or empty. */
export function requireSet(name: string, value: unknown): void {
  if (value !== undefined && value !== '') return;
  throw new ConfigError(
    `${name}: is ${value === '' ? 'empty' : 'undefined'}. Is the environment variable set?`,
  );
}

/** Refuses a secret that anybody guesses: one character, repeated. @throws ConfigError */
export function refuseRepeated(where: string, secret: string): void {
  if (new Set(secret).size > 1) return;
  throw new ConfigError(`${where}: is one character, repeated. Give a random one.`);
}

/** Reads an option that is one of several words. @throws ConfigError unless `value` is absent or one of `allowed`. */
export function oneOf<T extends string>(
  name: string,
  value: T | undefined,
  allowed: readonly T[],
): T | undefined {
  if (value === undefined || allowed.includes(value)) return value;
  throw new ConfigError(`${name}: ${JSON.stringify(value)} is not one of ${allowed.join(', ')}.`);
}

/**
 * Requires a logger with a function for each level. @throws ConfigError if one is missing; an absent logger is fine.
 */
export function requireLogger(logger: Logger | undefined): void {
  if (logger === undefined) return;
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    if (typeof logger?.[level] !== 'function') {
      throw new ConfigError(
        `logger: has no function ${level}. Pass a pino logger, console, or an object with these four functions.`,
      );
    }
  }
}
