// Raises an alarm when the store or the handlers have failed for some time, and another when they work again
// (admission.md §2.14).
// Deliveries, workers, health checks and ended runs report their results here. This code calls no store and has no
// timer.

import type { AlarmCode } from '../shared/codes.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';

/**
 * The two commonest outages: the store does not answer, or every handler fails. Each raises one alarm when it is
 * detected and one when it is over (admission.md §2.14).
 */
export interface Outages {
  /**
   * Called after each call of the store.
   * @param fault the error, if the store did not answer; absent if it answered.
   */
  readonly store: (fault?: string) => void;
  /**
   * Called after each run of a handler.
   * @param failure the error; absent if the run succeeded.
   */
  readonly handler: (failure?: string) => void;
}

/** The time without an answer after which the store counts as away, ms. A failover or an orderly restart takes less. */
const STORE_MS = 10_000;
/**
 * The time, ms, and the number of runs without a success, after which the handlers count as failing. A few failures
 * prove nothing, because retries of one bad event fail too.
 */
const HANDLER_MS = 60_000;
const HANDLER_RUNS = 20;

interface Kind {
  readonly code: Extract<AlarmCode, 'store_away' | 'handlers_failing'>;
  /**
   * The shortest duration of failures in a row before the alarm is raised, ms. At least `afterFailures` failures are
   * required too.
   */
  readonly afterMs: number;
  readonly afterFailures: number;
  readonly begun: (failures: number, seconds: number, last: string) => string;
  readonly over: (seconds: number) => string;
}

const STORE: Kind = {
  code: 'store_away',
  afterMs: STORE_MS,
  afterFailures: 2,
  begun: (_failures, seconds, last) =>
    `the store has not answered for ${seconds} s: deliveries are answered 503, and sellers deliver again. The last fault: ${last}`,
  over: (seconds) => `the store answers again, after ${seconds} s`,
};

const HANDLERS: Kind = {
  code: 'handlers_failing',
  afterMs: HANDLER_MS,
  afterFailures: HANDLER_RUNS,
  begun: (failures, seconds, last) =>
    `the last ${failures} runs of handlers failed, for ${seconds} s. A service that they share may be down. Events that fail too often become DEAD. The last error: ${last}`,
  over: (seconds) => `a run of a handler succeeded again, after ${seconds} s`,
};

/**
 * Makes the functions that watch the store and the handlers.
 * @param now returns the current time, Unix ms.
 */
export function createOutages(now: () => number, raiseAlarm: RaiseAlarm): Outages {
  return { store: watch(STORE, now, raiseAlarm), handler: watch(HANDLERS, now, raiseAlarm) };
}

function watch(kind: Kind, now: () => number, raiseAlarm: RaiseAlarm): (fault?: string) => void {
  const { code, afterMs, afterFailures, begun, over } = kind;
  /** Failures since the last success. */
  let failures = 0;
  let since = 0;
  let isTold = false;
  return (fault) => {
    // Nearly every call is a success that follows a success, and ends here.
    if (fault === undefined && failures === 0) return;
    if (failures === 0) since = now();
    const durationMs = Math.max(0, Math.round(now() - since));
    const seconds = Math.round(durationMs / 1000);
    if (fault === undefined) {
      if (isTold) raiseAlarm({ code, over: true, durationMs, message: over(seconds) });
      failures = 0;
      isTold = false;
      return;
    }
    failures += 1;
    if (isTold || failures < afterFailures || now() - since < afterMs) return;
    isTold = true;
    raiseAlarm({ code, over: false, durationMs, message: begun(failures, seconds, fault) });
  };
}
