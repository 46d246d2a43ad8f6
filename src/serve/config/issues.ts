// Turns the issues of the schema into mistakes, each at the member that it is about. The reader of the configuration
// calls it.
import type * as z from 'zod';
import type { Mistake, Path } from './yaml-text.ts';

type Issue = z.core.$ZodIssue;

/** True for a branch of a union that was not meant, because the value is of another type altogether. */
const isOtherType = (issues: readonly Issue[]): boolean =>
  issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0);

/** The members that a branch of a mapping does not know. */
const unknownTo = (issues: readonly Issue[]): readonly string[] =>
  issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys : [],
  );

const mistakesIn = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);

/** A member that a branch does not know weighs more than any number of mistakes in those that it does. */
const weight = (issues: readonly Issue[]): number => unknownTo(issues).length * 1_000 + mistakesIn(issues);

/**
 * The branch that was meant, if there is only one. It knows most of the members, then has the fewest mistakes. None of
 * its mistakes is a member of another branch.
 */
function meant(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const [first, ...others] = branches
    .filter((issues) => !isOtherType(issues))
    .toSorted((a, b) => weight(a) - weight(b));
  if (!first) return undefined;
  const isMixed = unknownTo(first).some((key) => others.some((other) => !unknownTo(other).includes(key)));
  const isOnly = others.every((other) => weight(first) < weight(other));
  return isOnly && !isMixed ? first : undefined;
}

/** The mistakes one by one, each at its member. */
export function mistakesOf(issues: readonly Issue[], above: Path = []): Mistake[] {
  return issues.flatMap((issue) => {
    const path = [...above, ...issue.path];
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...path, key], text: issue.message }));
    }
    const branch = issue.code === 'invalid_union' ? meant(issue.errors) : undefined;
    return branch ? mistakesOf(branch, path) : { path, text: issue.message };
  });
}
