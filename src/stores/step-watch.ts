// Notices that a store's clock was set back, for the alarm `clock_stepped` (admission.md §4.11).
// Called by every store of this package, with each time that the store's clock gives.

/** The member of a store's answer that says by how many ms the store's clock was set back. */
export interface StepTold {
  readonly clockSteppedMs?: number;
}

/**
 * Notices that a store's clock was set back, as one process sees it. Used only for the alarm (admission.md §4.11).
 */
export interface StepWatch {
  /**
   * Receives a time that the store's clock gave at some moment after `since`. The time is compared with this process's
   * own clock, which is never set back. `now` is Unix ms, with the offset; `since` comes from `performance.now()`.
   */
  readonly seen: (now: number, since?: number) => void;
  /**
   * Adds to a store's answer the largest amount by which the clock was set back since the last answer. Returns the
   * answer unchanged if the clock was not set back.
   */
  readonly told: <A extends StepTold>(answer: A) => A;
}

/**
 * Differences up to these limits do not count as a clock that was set back. Nodes of a cluster differ by up to 1 s, and
 * two clocks drift apart by a thousandth of the time.
 */
const NODES_MS = 1000;
const DRIFT = 0.001;

export function stepWatch(): StepWatch {
  let last: { readonly now: number; readonly at: number } | undefined;
  let backMs = 0;
  return {
    seen: (now, since) => {
      // Without `since`, the time since the last call counts as 0. Then a clock that was set back is noticed only if
      // its time is earlier than the last one.
      const passed = last && since !== undefined ? since - last.at : 0;
      const behindMs = last ? last.now + passed - now : 0;
      if (behindMs > NODES_MS + Math.abs(passed) * DRIFT) backMs = Math.max(backMs, behindMs);
      last = { now, at: performance.now() };
    },
    told: (answer) => {
      if (backMs === 0) return answer;
      const clockSteppedMs = Math.round(backMs);
      backMs = 0;
      return { ...answer, clockSteppedMs };
    },
  };
}
