// Checks the option `contentTypes` (verification.md §7.25). The configuration calls it; `explain` and the settings
// that a refusal names ask `isAdmissible`.
import { ConfigError } from '../shared/errors.ts';

/** `application/` and a name of RFC 6838 §4.2 that ends in `+json`; no wildcard, no parameters. */
const ADMISSIBLE = /^application\/[a-z0-9][a-z0-9!#$&^_.+-]{0,120}\+json$/i;

/** True if the option `contentTypes` may name the type. */
export const isAdmissible = (type: unknown): type is string =>
  typeof type === 'string' && ADMISSIBLE.test(type);

/**
 * The media types that are accepted beside `application/json`, lower case.
 * @throws ConfigError for anything but a list of types of the form `application/…+json`.
 */
export function contentTypes(types: unknown): ReadonlySet<string> {
  if (types === undefined) return new Set();
  if (!Array.isArray(types) || !types.every(isAdmissible)) {
    throw new ConfigError(
      "contentTypes: must be an array of types of the form application/…+json, without parameters, e.g. ['application/a2a+json']. application/json is always accepted.",
    );
  }
  return new Set(types.map((type) => type.toLowerCase()));
}
