// Checks the option `contentTypes` (verification.md §7.25). The configuration calls this file. The command `explain`
// and the advice about refused media types call `isAdmissible`.
import { ConfigError } from '../shared/errors.ts';

/**
 * Matches a type that the option `contentTypes` may name: `application/` and a name of RFC 6838 §4.2 that ends in
 * `+json`, without wildcard and parameters.
 */
const ADMISSIBLE = /^application\/[a-z0-9][a-z0-9!#$&^_.+-]{0,120}\+json$/i;

/** True if the option `contentTypes` may name the type. */
export const isAdmissible = (type: unknown): type is string =>
  typeof type === 'string' && ADMISSIBLE.test(type);

/**
 * Returns the media types that are accepted in addition to `application/json`, in lower case.
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
