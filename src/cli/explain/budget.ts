/** How much work a search may do, counted in bytes and not in time: the same capture has the same answer everywhere. */
export interface Budget {
  /** Takes `cost` off it. @returns false where less is left: nothing is taken, and the work is not to be done. */
  readonly take: (cost: number) => boolean;
  /** Whether so much is left. Where not, that is noted as in `take`. */
  readonly affords: (cost: number) => boolean;
  /** Whether something was left out. */
  readonly cutShort: () => boolean;
  /** Notes that something was left out for another reason than cost. */
  readonly leaveOut: () => void;
  /** What is left, in bytes. */
  readonly left: () => number;
}

/** A few seconds of hashing and writing; a body of 1 MiB is written in every form that differs in two things. */
export const MOST_WORK: number = 512 * 1024 * 1024;

/**
 * A budget, or a share of one.
 * @param bytes all that may be spent.
 * @param of is charged too.
 */
export function createBudget(bytes: number = MOST_WORK, of?: Budget): Budget {
  let left = bytes;
  let cut = false;
  const affords = (cost: number): boolean => {
    const enough = cost <= left && (of?.affords(cost) ?? true);
    cut ||= !enough;
    return enough;
  };
  return {
    affords,
    take(cost) {
      if (!affords(cost)) return false;
      of?.take(cost);
      left -= cost;
      return true;
    },
    cutShort: () => cut,
    leaveOut() {
      cut = true;
    },
    left: () => left,
  };
}

/** What a finding says besides, where the search was cut short. */
export const CUT_SHORT =
  'Not searched further: the delivery is too large, or nested too deeply, to try everything.';

/** @returns `says`, and that the search was cut short, where it was. */
export const withNote = (says: string, budget: Budget): string =>
  budget.cutShort() ? `${says} ${CUT_SHORT}` : says;
