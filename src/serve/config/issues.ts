// Turns the issues that the schema finds into mistakes, each at the member that is wrong. The reader of the
// configuration calls it.
import type * as z from 'zod';
import type { Mistake, Path } from './yaml-text.ts';

type Issue = z.core.$ZodIssue;

/** True for a branch of a union whose type differs from that of the value, so that it cannot be meant. */
const isOtherType = (issues: readonly Issue[]): boolean =>
  issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0);

/** Returns the members that a branch for mappings does not know. */
const unknownTo = (issues: readonly Issue[]): readonly string[] =>
  issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys : [],
  );

const mistakesIn = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);

/**
 * Returns the weight of a branch's issues. One unknown member weighs more than any number of mistakes in known members.
 */
const weight = (issues: readonly Issue[]): number => unknownTo(issues).length * 1_000 + mistakesIn(issues);

/**
 * Returns the branch that was meant, if there is only one. It is the one that knows most of the members, and then has
 * the fewest mistakes. None of the members that it does not know belongs to another branch.
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

/** Returns the mistakes one by one, each at its member. */
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
