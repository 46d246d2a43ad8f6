// Turns zod's validation issues into mistakes, each at the member that is wrong. `read-config.ts` calls it.
import type * as z from 'zod';
import type { Mistake, Path } from './yaml-text.ts';

type Issue = z.core.$ZodIssue;

/**
 * True for the issues of a union's branch if the branch expects another type than the value has. The author then did
 * not mean this branch.
 */
const isOtherType = (issues: readonly Issue[]): boolean =>
  issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0);

/** Returns the member names in the value that the tried branch of a union does not allow. */
const unknownTo = (issues: readonly Issue[]): readonly string[] =>
  issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys : [],
  );

const mistakesIn = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);

/**
 * Returns the weight of the issues of a union's branch; the lightest branch is the likeliest. One unknown member weighs
 * more than any number of mistakes in known members.
 */
const weight = (issues: readonly Issue[]): number => unknownTo(issues).length * 1_000 + mistakesIn(issues);

/**
 * Returns the issues of the union's branch that the author meant. It has the fewest unknown members, and then the
 * fewest mistakes. Undefined if several branches are equally likely, or if one of its unknown members belongs to
 * another branch.
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

/** Returns the mistakes one by one, each with the path of its member. */
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
