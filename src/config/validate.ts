import type { Logger } from '../shared/alarms.ts';
import { ConfigError, textOf } from '../shared/errors.ts';

/**
 * @param instead by a name that does not exist, what to write for it.
 * @throws ConfigError for what is not an object, and for a member that does not exist, naming those that do: misspelt, it
 *   would silently do nothing.
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

/** What is wrong with an option that is there, or is not: `missing`, `is not an array`. */
export const describeMissing = (value: unknown, wanted: string): string =>
  value === undefined || value === null || value === '' ? 'missing' : `is not ${wanted}`;

/** What was given for a number, and what it is where it only looks like one: `"5000" is a string,`. */
export function notANumber(value: unknown): string {
  if (typeof value === 'string') return `${JSON.stringify(value)} is a string,`;
  return typeof value === 'bigint' ? `${value} is a bigint,` : `${textOf(value)} is`;
}

/** @throws ConfigError unless `value` (or `fallback`) is a whole number within the bounds. */
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

/** Timers hold 31 bits of milliseconds. */
export const MAX_TIMER_MS: number = 2_147_483_647;

/** @throws ConfigError unless `value` is absent or `true` or `false`: the string 'false' is true to JavaScript. */
export function flag(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw new ConfigError(`${name}: ${JSON.stringify(value)} is not true or false.`);
}

/** @throws ConfigError unless `value` is a string with something in it. */
export function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new ConfigError(`${name}: ${JSON.stringify(value) ?? typeof value} is not a non-empty string.`);
}

/** Of a secret that is read from the environment. @throws ConfigError where it is undefined or empty. */
export function requireSet(name: string, value: unknown): void {
  if (value !== undefined && value !== '') return;
  throw new ConfigError(
    `${name}: is ${value === '' ? 'empty' : 'undefined'}. Is the environment variable set?`,
  );
}

/** @throws ConfigError for a secret that anybody guesses. */
export function refuseRepeated(where: string, secret: string): void {
  if (new Set(secret).size > 1) return;
  throw new ConfigError(`${where}: is one character, repeated. Give a random one.`);
}

/** @throws ConfigError unless `value` is absent or one of `allowed`. */
export function oneOf<T extends string>(
  name: string,
  value: T | undefined,
  allowed: readonly T[],
): T | undefined {
  if (value === undefined || allowed.includes(value)) return value;
  throw new ConfigError(`${name}: ${JSON.stringify(value)} is not one of ${allowed.join(', ')}.`);
}

/** @throws ConfigError unless `logger` is absent or has a function for each level. */
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
