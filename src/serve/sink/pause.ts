// Pauses a sink after a fault (serve.md §2.6). It chooses the next attempt and its time, and gives back events that
// have waited too long. The forwarder makes one for each sink.
import { PrintableError } from '../../index.ts';
import { onAbort } from './on-abort.ts';

/** The clock. Tests pass their own, with which hours take no time. */
export interface Clock {
  /** The time in Unix ms, which never goes back. */
  readonly now: () => number;
  /** Resolves after that time, or early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The time between two attempts while a sink is paused. Ms. */
const EVERY_MS = 1_000;
/**
 * The longest time that an event waits for the end of pauses. A longer pause that the sink asks for is cut to this. Ms.
 */
const LONGEST_MS = 60_000;
/**
 * The time between two events that are given back during a pause to make room for others. Each costs the store two
 * writes. Ms.
 */
const PLACE_EVERY_MS = 5_000;
/** The time from the beginning of a pause to its first alarm, and between later alarms. Ms. */
const TELL_AFTER_MS = 10_000;
const TELL_EVERY_MS = 3_600_000;

/** The time for which the faults of an event that was given back are remembered for its next run. Ms. */
const KEPT_MS = 600_000;
/** The most events whose faults are remembered. The event that was given back first is forgotten first. */
const KEPT_MOST = 10_000;

/** A run of an event, as the pause of the sink knows it. Ticks are counted: each attempt and each fault is one tick. */
export interface SinkRun {
  readonly id: string;
  /** The tick at which its last attempt began; 0 before the first attempt. */
  triedAt: number;
  /** The tick at which its last attempt failed. Undefined once another event has succeeded since. */
  faultedAt: number | undefined;
  /** The number of its faults after which another event succeeded. */
  proven: number;
  /** The latest fault. */
  fault: string;
  /** The time of the latest fault, and the time until which the sink asked not to be sent this event. Unix ms. */
  faultMs: number;
  notBefore: number;
  /** The time until which it waits, set when it first waits. Unix ms. */
  until: number | undefined;
}

/**
 * Thrown if the event was not at fault. The store then decides what happens to the event (`given_back`, admission.md
 * §4.3).
 */
export class GivenBack extends PrintableError {
  override readonly name = 'GivenBack';
  readonly code = 'given_back';
}

/** Functions that are called when a pause begins, lasts and ends. */
export interface PauseHooks {
  readonly begun: (fault: string) => void;
  /** Called after 10 s, and then once an hour. */
  readonly lasting: (fault: string, durationMs: number) => void;
  /** Called at the end of a pause. @param isTold true if `lasting` was called. */
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
  /** Begins a run. If the event was given back before, its known faults are kept. @param id the id of the event. */
  readonly begin: (id: string) => SinkRun;
  readonly end: (run: SinkRun, isGivenBack: boolean) => void;
  /**
   * Resolves when the run may make an attempt. Rejects with `GivenBack` if it has waited too long, or if `signal`
   * fires.
   */
  readonly turn: (run: SinkRun, signal: AbortSignal) => Promise<void>;
  /** Ends an attempt that succeeded. Each attempt ends with this function or one of the next two. */
  readonly passed: (run: SinkRun) => void;
  readonly faulted: (run: SinkRun, fault: string, retryAfterMs: number | undefined) => void;
  /** Ends an attempt that tells nothing about the sink. */
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
  /** The attempt that is running; there is at most one. */
  trying: SinkRun | undefined;
  /**
   * The number of attempts in the pause, and the beginning of the last one. At first that is the beginning of the
   * pause. Unix ms.
   */
  tries: number;
  triedAt: number;
  /** The time until which the sink is not used, because it asked for that with more than one event. Unix ms. */
  notBefore: number;
  /** The time before which no event is given back to make room. Unix ms. */
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

/** Makes the pause of a sink. @param places the most events that run at the same time. */
export function createPause(clock: Clock, hooks: PauseHooks, places: number): Pause {
  /** Runs whose last fault was not yet followed by a success of another event. */
  const unproven = new Set<SinkRun>();
  /** Runs that were given back after faults, by the event's id. */
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

  /** Does everything that is due, and sleeps until the next time. */
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
   * If all waiting events have failed in this pause, gives back the one that failed first, so that another event can
   * run.
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

  /** Reports an outage while events wait for its end. Without waiting events it is unknown if the outage goes on. */
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
    // A run that has waited long enough has just had its last attempt.
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
      // The attempt did not end in another way, so it ends here, and the next run has its turn.
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
      // A single event may be the reason why the sink asks to wait, so other events do not wait for it.
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
 * Returns the run that makes the next attempt: the one whose last attempt was the longest ago. The event whose fault
 * began the pause comes last at first.
 */
function nextOf(waiting: Iterable<Waiting>, paused: Paused): Waiting | undefined {
  const rank = ({ run }: Waiting): number => (isBeginner(run, paused) ? Infinity : run.triedAt);
  let next: Waiting | undefined;
  for (const one of waiting) if (!next || rank(one) < rank(next)) next = one;
  return next;
}

const isBeginner = (run: SinkRun, { tries, by }: Paused): boolean => tries === 0 && run === by;

/**
 * Returns the time of the next attempt. An event other than the failed one is tried at once; later attempts follow once
 * a second.
 */
function dueAt({ run }: Waiting, paused: Paused): number {
  const { tries, since, triedAt, notBefore } = paused;
  const at = tries === 0 && !isBeginner(run, paused) ? since : triedAt + EVERY_MS;
  return Math.max(at, notBefore, run.notBefore);
}

/**
 * Returns the end of the wait of the run that is next. It is not given back just before its attempt, because a sink
 * with few events would then be tried less often.
 */
function endOfNext(one: Waiting, paused: Paused): number {
  const due = dueAt(one, paused);
  return due <= one.until + EVERY_MS ? due : one.until;
}
