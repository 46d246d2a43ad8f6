import { putBounded } from './bounded.ts';

/**
 * Lets what is said of a subject through once in a minute.
 * @param at receiver's clock, Unix ms.
 * @returns how often it was held back before, where it is let through; undefined where it is not.
 */
export type Thinning = (subject: string, at: number) => number | undefined;

const EVERY_MS = 60_000;
/** Subjects remembered. One that is forgotten is let through early. */
const MAX_SUBJECTS = 10_000;

/** Its size is bounded, whatever the subjects are. */
export function createThinning(): Thinning {
  const last = new Map<string, { readonly at: number; suppressed: number }>();
  return (subject, at) => {
    const before = last.get(subject);
    if (before && Math.abs(at - before.at) < EVERY_MS) {
      before.suppressed += 1;
      return undefined;
    }
    putBounded(last, subject, { at, suppressed: 0 }, MAX_SUBJECTS);
    return before?.suppressed ?? 0;
  };
}
