import type { StepWatch } from '../step-watch.ts';
import { stepWatch } from '../step-watch.ts';

/** The store's clock as this process knows it. */
export interface StoreClock {
  /**
   * What the store said just now; a reply that was long under way is behind what is known already, and is left.
   * Unix ms, with the offset.
   * @param since when it was asked, by `performance.now()`.
   * @param isRight the store has refused what was planned with what is known: it is set in any case.
   */
  readonly seen: (now: number, since: number, isRight?: boolean) => void;
  /**
   * Never ahead of the store's own by more than the two clocks drift apart between two answers: leases that are planned
   * with it come out shorter, not longer (admission.md §8.8). Unix ms, with the offset.
   */
  readonly now: () => number;
}

/** The best answer counts for so long: then the two clocks may have drifted apart. Ms. */
const BEST_MS = 1000;

/** @param clockOffsetMs `StoreOptions.clockOffsetMs`. */
export function storeClock(clockOffsetMs: () => number, watch: StepWatch = stepWatch()): StoreClock {
  let store = 0;
  let own = -Infinity;
  return {
    seen: (now, since, isRight = false) => {
      const at = performance.now();
      watch.seen(now, since);
      const said = now - clockOffsetMs();
      if (!isRight && at - own < BEST_MS && said < store + at - own) return;
      store = said;
      own = at;
    },
    now: () => Math.floor(store + performance.now() - own + clockOffsetMs()),
  };
}
