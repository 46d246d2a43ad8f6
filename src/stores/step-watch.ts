// Notices a store's clock that was set back, for the alarm `clock_stepped` (admission.md §4.11).
// Called by every store of this package, with each time that its clock tells.

/** The part of an answer that tells of a clock that was set back. */
export interface StepTold {
  readonly clockSteppedMs?: number;
}

/** Sees if a store's clock was set back, as one process notices it. It serves the alarm alone (admission.md §4.11). */
export interface StepWatch {
  /**
   * Takes the time that the store's clock told at a moment after `since`. It is compared with this process's own
   * clock, which is never set back. `now` is Unix ms, with the offset; `since` is of `performance.now()`.
   */
  readonly seen: (now: number, since?: number) => void;
  /** Returns the answer, with the step that was seen since the last answer. */
  readonly told: <A extends StepTold>(answer: A) => A;
}

/**
 * Differences that are no step. Nodes of a cluster differ by up to 1 s, and two clocks drift apart by a thousandth of
 * the time.
 */
const NODES_MS = 1000;
const DRIFT = 0.001;

export function stepWatch(): StepWatch {
  let last: { readonly now: number; readonly at: number } | undefined;
  let backMs = 0;
  return {
    seen: (now, since) => {
      // Without `since`, only a time behind the last one itself counts.
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
