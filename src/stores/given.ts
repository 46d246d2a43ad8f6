import { ConfigError } from '../errors.ts';

/** @throws ConfigError for options that are none, or one that does not exist: misspelt, it would silently do nothing. */
export function requireOptions(who: string, options: unknown, known: Readonly<Record<string, true>>): void {
  const names = Object.keys(known);
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError(`${who}: give an object of options. Known: ${names.join(', ')}.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    throw new ConfigError(`${who}: ${unknown} is not known. Known: ${names.join(', ')}.`);
  }
}
