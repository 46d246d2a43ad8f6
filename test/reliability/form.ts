/* The three forms of the tests, chosen by `TEST_FORM`. Files that run in more than one form ask here which. */

/** A form of the tests: `short` is `npm test`, `rows` is `npm run test:rows`, `long` is `npm run test:long`. */
export type Form = 'short' | 'rows' | 'long';

const FORMS: readonly Form[] = ['short', 'rows', 'long'];

/** @throws Error for a name that is no form. */
export function formNamed(name: string | undefined): Form {
  const form = FORMS.find((known) => known === (name ?? 'short'));
  if (form === undefined) throw new Error(`no form of the tests is named ${name}: ${FORMS.join(', ')}`);
  return form;
}

/** The form of this run. */
export const FORM: Form = formNamed(process.env['TEST_FORM']);

/** True in the long form: new seeds, larger worlds, more of everything, without a bound on time. */
export const LONG: boolean = FORM === 'long';

/**
 * True in the form `rows`: sizes are those of `npm test`; what runs is what `npm test` leaves out. A file that uses this
 * or `inThisForm` is run by `npm run test:rows`; so are those that `test/support/groups.ts` lists.
 */
export const ROWS: boolean = FORM === 'rows';

/**
 * Returns the rows of a table that this form runs: in the short form those that `isShort` picks, in `rows` the others,
 * in the long form all of them. So that no row is forgotten, each is in exactly one of the first two.
 */
export function inThisForm<T>(rows: readonly T[], isShort: (row: T, index: number) => boolean): readonly T[] {
  return rows.filter((row, index) => LONG || isShort(row, index) !== ROWS);
}
