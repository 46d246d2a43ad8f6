/** Looks again, as it is used, whether something is still as it was when the store was opened. */
export interface LookAgain {
  /**
   * Looks every 10 s; once something is wrong, with each call until it is mended. Else undefined: there is nothing to wait
   * for. Calls that come during a look wait for that one.
   * @throws what the look throws.
   */
  readonly passed: () => Promise<void> | undefined;
  /** The next call looks. */
  readonly due: () => void;
}

const LOOK_AGAIN_MS = 10_000;

/** @param now ms; begins now. */
export function lookAgain(look: () => Promise<void>, now: () => number): LookAgain {
  let lookedAt = now();
  let isDue = false;
  let looking: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    const since = now();
    isDue = false;
    try {
      await look();
      lookedAt = since;
    } catch (error) {
      isDue = true;
      throw error;
    }
  };
  return {
    passed: () => {
      if (isDue || Math.abs(now() - lookedAt) >= LOOK_AGAIN_MS) {
        looking ??= run().finally(() => {
          looking = undefined;
        });
      }
      return looking;
    },
    due: () => {
      isDue = true;
    },
  };
}
