import type * as z from 'zod';
import type { Mistake, Path } from './yaml-text.ts';

type Issue = z.core.$ZodIssue;

/** A branch of a union that was not meant: the value is of another type altogether. */
const isOtherType = (issues: readonly Issue[]): boolean =>
  issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0);

const weight = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);

/** The branch that was meant: the one with the fewest mistakes, if it is the only one. */
function meant(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const [first, second] = branches
    .filter((issues) => !isOtherType(issues))
    .toSorted((a, b) => weight(a) - weight(b));
  if (!first) return undefined;
  return second === undefined || weight(first) < weight(second) ? first : undefined;
}

/** Each mistake by itself, at the member that it is about. */
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
