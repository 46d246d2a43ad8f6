// Pauses a sink (destination of events) after a fault (serve.md §2.6). Chooses the next attempt and its time, and gives
// events that have waited too long back to the store's queue. The forwarder makes one pause for each sink.
import { PrintableError } from '../../index.ts';
import { onAbort } from './on-abort.ts';

/** The clock of a pause. A test may give a clock on which hours pass in no time. */
export interface Clock {
  /** The time in Unix ms, which never goes back. */
  readonly now: () => number;
  /** Resolves after `ms`, or early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The time between two attempts while a sink is paused. Ms. */
const EVERY_MS = 1_000;
/**
 * The longest time that an event waits for the end of pauses. If the sink asks for a longer pause, it is cut to this
 * time. Ms.
 */
const LONGEST_MS = 60_000;
/**
 * The time between two events that are given back to the queue during a pause, to make room for others. Each of them
 * costs the store two writes. Ms.
 */
const PLACE_EVERY_MS = 5_000;
/** The time from the beginning of a pause to its first alarm. Ms. */
const TELL_AFTER_MS = 10_000;
/** The time between later alarms of the same pause. Ms. */
const TELL_EVERY_MS = 3_600_000;

/** The time for which the faults of an event are remembered for its next run, if it was given back to the queue. Ms. */
const KEPT_MS = 600_000;
/**
 * The largest number of events whose faults are remembered. The event that was given back to the queue first is
 * forgotten first.
 */
const KEPT_MOST = 10_000;

/**
 * A run (one call of the handler for an event), with its attempts to send the event. A tick is a counter: each attempt
 * and each fault gets the next number, which shows what came first.
 */
export interface SinkRun {
  readonly id: string;
  /** The tick at which the run's last attempt began; 0 before the first attempt. */
  triedAt: number;
  /** The tick at which the run's last attempt failed. Undefined once another event has succeeded since. */
  faultedAt: number | undefined;
  /** The number of this run's faults that were each followed by a success of another event. */
  proven: number;
  /** The text of the run's latest fault. */
  fault: string;
  /** The time of the run's latest fault, Unix ms. */
  faultMs: number;
  /** The time until which the sink asked not to be sent this event, Unix ms. */
  notBefore: number;
  /** The time until which the run waits for the end of pauses. It is set when the run first waits. Unix ms. */
  until: number | undefined;
}

/**
 * Thrown if a run ends although its event was not at fault. The run is then not counted as an attempt (`given_back`,
 * admission.md §4.3).
 */
export class GivenBack extends PrintableError {
  override readonly name = 'GivenBack';
  readonly code = 'given_back';
}

/** Functions that are called when a pause begins, lasts and ends. */
export interface PauseHooks {
  readonly begun: (fault: string) => void;
  /** Called when a pause has lasted 10 s, and then once an hour. */
  readonly lasting: (fault: string, durationMs: number) => void;
  /** Called at the end of a pause. @param isTold true if `lasting` was called for this pause. */
  readonly over: (durationMs: number, isTold: boolean) => void;
}

export interface PauseState {
  readonly paused: boolean;
  /** The beginning of the pause, Unix ms; absent: the sink is not paused. */
  readonly since?: number;
  readonly lastFault?: string;
}

/** The pause of a sink (serve.md §2.6). It decides which run may make an attempt, and when. */
export interface Pause {
  /**
   * Begins a run of the event with this id. If the event's last run ended as `given_back`, the known faults of the
   * event are kept.
   */
  readonly begin: (id: string) => SinkRun;
  readonly end: (run: SinkRun, isGivenBack: boolean) => void;
  /**
   * Resolves when the run may make an attempt. Rejects with `GivenBack` if the run has waited too long, or if `signal`
   * fires.
   */
  readonly turn: (run: SinkRun, signal: AbortSignal) => Promise<void>;
  /** Called if an attempt succeeded. After each attempt, one of `passed`, `faulted` and `stopped` is called. */
  readonly passed: (run: SinkRun) => void;
  readonly faulted: (run: SinkRun, fault: string, retryAfterMs: number | undefined) => void;
  /** Called if an attempt ended without telling anything about the sink. */
  readonly stopped: (run: SinkRun) => void;
  readonly state: () => PauseState;
}

interface Paused {
  readonly since: number;
  /** The tick at which the pause began. */
  readonly tick: number;
  /** The run whose fault began the pause. */
  readonly by: SinkRun;
  fault: string;
  /** The run whose attempt is being made; during a pause there is at most one. */
  trying: SinkRun | undefined;
  /** The number of attempts in the pause. */
  tries: number;
  /** The time at which the last of these attempts began; before the first, the beginning of the pause. Unix ms. */
  triedAt: number;
  /**
   * The time before which no event is sent, Unix ms. It grows only if the sink asks for a wait in its answer to another
   * event than that of `by`.
   */
  notBefore: number;
  /** The time before which no event is given back to the queue to make room. Unix ms. */
  placeAt: number;
  tellAt: number;
  isTold: boolean;
}

interface Waiting {
  readonly run: SinkRun;
  readonly until: number;
  readonly go: () => void;
  readonly giveBack: () => void;
}

/** Makes the pause of a sink. @param places the limit of events that run at the same time. */
export function createPause(clock: Clock, hooks: PauseHooks, places: number): Pause {
  /** Runs that had a fault after which no other event has succeeded yet. */
  const unproven = new Set<SinkRun>();
  /** Runs with faults that ended as `given_back`, by the event's id. Their faults count in the event's next run. */
  const kept = new Map<string, SinkRun>();
  const waiting = new Set<Waiting>();
  let tick = 0;
  let paused: Paused | undefined;
  let timer = new AbortController();

  function admit(one: Waiting): void {
    waiting.delete(one);
    one.run.triedAt = tick += 1;
    one.go();
  }

  /**
   * Starts the attempt that is due, gives back the runs that have waited too long, and sleeps until something is due.
   */
  function stir(): void {
    if (!paused) return;
    timer.abort();
    const now = clock.now();
    let next = paused.trying ? undefined : nextOf(waiting, paused);
    if (next && dueAt(next, paused) <= now) {
      paused.trying = next.run;
      paused.tries += 1;
      paused.triedAt = now;
      admit(next);
      next = undefined;
    }
    if (!paused.trying) makePlace(paused, now);
    let earliest = Infinity;
    for (const one of waiting) {
      const at = one === next ? endOfNext(one, paused) : one.until;
      if (at > now) earliest = Math.min(earliest, at);
      else {
        waiting.delete(one);
        one.giveBack();
      }
    }
    if (waiting.size === 0 && !paused.trying) return;
    tell(paused, now);
    void wakeAt(Math.min(earliest, paused.tellAt), now);
  }

  /**
   * If all places are taken by events that have failed in this pause, gives back the event whose last attempt is the
   * oldest. So another event can run.
   */
  function makePlace(outage: Paused, now: number): void {
    if (waiting.size < places || now < outage.placeAt) return;
    const all = [...waiting];
    if (all.some(({ run }) => run.faultedAt === undefined || run.faultedAt < outage.tick)) return;
    outage.placeAt = now + PLACE_EVERY_MS;
    const first = all.reduce((one, other) => (other.run.triedAt < one.run.triedAt ? other : one));
    waiting.delete(first);
    first.giveBack();
  }

  /**
   * Reports a lasting outage. This is done only while events wait for its end, because without them it is unknown if
   * the outage goes on.
   */
  function tell(outage: Paused, now: number): void {
    if (now < outage.tellAt) return;
    outage.tellAt = now + TELL_EVERY_MS;
    outage.isTold = true;
    hooks.lasting(outage.fault, now - outage.since);
  }

  async function wakeAt(at: number, now: number): Promise<void> {
    timer.abort();
    const { signal } = (timer = new AbortController());
    await clock.sleep(at - now, signal);
    if (!signal.aborted) stir();
  }

  function open({ since, isTold }: Paused): void {
    paused = undefined;
    timer.abort();
    for (const one of waiting) admit(one);
    hooks.over(clock.now() - since, isTold);
  }

  function keep(run: SinkRun): void {
    kept.set(run.id, run);
    if (kept.size <= KEPT_MOST) return;
    for (const [id, oldest] of kept) {
      kept.delete(id);
      unproven.delete(oldest);
      break;
    }
  }

  function stopped(run: SinkRun): void {
    if (paused?.trying === run) paused.trying = undefined;
    stir();
  }

  function newPause(by: SinkRun, fault: string, now: number): Paused {
    return {
      since: now,
      tick,
      by,
      fault,
      trying: undefined,
      tries: 0,
      triedAt: now,
      notBefore: now,
      placeAt: now,
      tellAt: now + TELL_AFTER_MS,
      isTold: false,
    };
  }

  async function turn(run: SinkRun, signal: AbortSignal): Promise<void> {
    if (!paused && !signal.aborted) {
      run.triedAt = tick += 1;
      return;
    }
    const { promise, resolve: go, reject } = Promise.withResolvers<void>();
    const until = (run.until ??= clock.now() + LONGEST_MS);
    const giveBack = (): void => reject(new GivenBack(`the sink is paused: ${paused?.fault ?? 'it stops'}`));
    const one = { run, until, go, giveBack };
    waiting.add(one);
    const takeBack = onAbort(signal, () => {
      if (waiting.delete(one)) giveBack();
      stir();
    });
    // If the run has used up its waiting time, it has just made its last attempt, and is given back to the queue.
    if (until <= clock.now() && waiting.delete(one)) giveBack();
    stir();
    try {
      await promise;
    } finally {
      takeBack();
    }
  }

  return {
    begin(id) {
      const known = kept.get(id);
      kept.delete(id);
      if (known && clock.now() - known.faultMs <= KEPT_MS) return Object.assign(known, { until: undefined });
      if (known) unproven.delete(known);
      return {
        id,
        triedAt: 0,
        faultedAt: undefined,
        proven: 0,
        fault: '',
        faultMs: 0,
        notBefore: 0,
        until: undefined,
      };
    },
    end(run, isGivenBack) {
      if (isGivenBack && run.fault !== '') keep(run);
      else unproven.delete(run);
      // If the run ends while its attempt counts as running, the attempt ends here, and another run may try.
      if (paused?.trying === run) stopped(run);
    },
    turn,
    passed(run) {
      for (const other of unproven) {
        if (other === run || (other.faultedAt ?? Infinity) > run.triedAt) continue;
        other.proven += 1;
        other.faultedAt = undefined;
        unproven.delete(other);
      }
      // An attempt that began before the pause tells nothing about the sink's present state.
      if (paused && run.triedAt > paused.tick) open(paused);
      else stopped(run);
    },
    faulted(run, fault, retryAfterMs = 0) {
      const now = clock.now();
      run.faultedAt = tick += 1;
      run.fault = fault;
      run.faultMs = now;
      run.notBefore = now + Math.min(retryAfterMs, LONGEST_MS);
      unproven.add(run);
      const isNew = !paused;
      paused ??= newPause(run, fault, now);
      paused.fault = fault;
      // The sink may have asked to wait only because of the event that began the pause. So all events wait only if
      // another event got such an answer.
      if (paused.by !== run) paused.notBefore = Math.max(paused.notBefore, run.notBefore);
      if (isNew) hooks.begun(fault);
      stopped(run);
    },
    stopped,
    state: () =>
      paused ? { paused: true, since: Math.round(paused.since), lastFault: paused.fault } : { paused: false },
  };
}

/**
 * Returns the waiting run that makes the next attempt: the one whose last attempt is the oldest. For the first attempt
 * of a pause, the run whose fault began the pause comes last.
 */
function nextOf(waiting: Iterable<Waiting>, paused: Paused): Waiting | undefined {
  const rank = ({ run }: Waiting): number => (isBeginner(run, paused) ? Infinity : run.triedAt);
  let next: Waiting | undefined;
  for (const one of waiting) if (!next || rank(one) < rank(next)) next = one;
  return next;
}

const isBeginner = (run: SinkRun, { tries, by }: Paused): boolean => tries === 0 && run === by;

/**
 * Returns the time of the next attempt. The first attempt of a pause is due immediately, unless its event began the
 * pause. Other attempts follow once a second. No attempt is due before the time that the sink asked for.
 */
function dueAt({ run }: Waiting, paused: Paused): number {
  const { tries, since, triedAt, notBefore } = paused;
  const at = tries === 0 && !isBeginner(run, paused) ? since : triedAt + EVERY_MS;
  return Math.max(at, notBefore, run.notBefore);
}

/**
 * Returns the time until which the next run waits. If its attempt is due before its waiting time ends, or at most a
 * second later, the run waits for the attempt. Otherwise a sink with few events would be tried less often.
 */
function endOfNext(one: Waiting, paused: Paused): number {
  const due = dueAt(one, paused);
  return due <= one.until + EVERY_MS ? due : one.until;
}
