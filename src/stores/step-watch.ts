/** What an answer says of a clock that was set back. */
export interface StepTold {
  readonly clockSteppedMs?: number;
}

/** Whether a store's clock was set back, as one process sees it: for the alarm alone (admission.md §4.11). */
export interface StepWatch {
  /**
   * What the store's clock said, at a moment since `since`; so much of this process's own clock, which is never set back,
   * has passed. Unix ms, with the offset; `performance.now()`.
   */
  readonly seen: (now: number, since?: number) => void;
  /** The answer, with what was seen since the last one. */
  readonly told: <A extends StepTold>(answer: A) => A;
}

/** Nodes of a cluster differ by so much, and two clocks drift apart by this share of what passes. */
const NODES_MS = 1000;
const DRIFT = 0.001;

export function stepWatch(): StepWatch {
  let last: { readonly now: number; readonly at: number } | undefined;
  let backMs = 0;
  return {
    seen: (now, since) => {
      // Where nothing is said of when, only what is behind the last word itself counts.
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
