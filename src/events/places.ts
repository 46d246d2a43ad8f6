import { printableName } from '../codec/printable.ts';

/** As Standard Schema and zod say where a value does not fit. */
export interface Issue {
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** How many places of a mismatch a warning names. */
const MAX_PLACES = 4;

/**
 * Where a value does not fit its schema. Not why: messages of schemas may quote values, and the body is never logged.
 * @param whole the value's name where no member of it is to blame.
 */
export function placesOf(issues: readonly Issue[], whole: string): string {
  const places = issues.slice(0, MAX_PLACES).map(({ path = [] }) => {
    const keys = path.map((step) => (typeof step === 'object' ? step.key : step));
    return keys.length === 0 ? whole : keys.map((key) => printableName(String(key))).join('.');
  });
  return `at ${places.join(', ')}`;
}
