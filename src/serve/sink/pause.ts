// Pauses a sink after a fault: chooses the next attempt and its time, and gives back events that waited too long
// (serve.md §2.6). The forwarder makes one for each sink.
import { PrintableError } from '../../index.ts';
import { onAbort } from './on-abort.ts';

/** The clock, passed in so that tests have hours in a moment. */
export interface Clock {
  /** Unix ms, which only grow. */
  readonly now: () => number;
  /** Resolves after that time; early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The time between two attempts at a paused sink. Ms. */
const EVERY_MS = 1_000;
/** The longest wait of an event for the end of pauses. The sink's own wish for a pause is cut to it too. Ms. */
const LONGEST_MS = 60_000;
/** The time between two places that are made in a pause. Each costs the store two writes. Ms. */
const PLACE_EVERY_MS = 5_000;
/** The first alarm of a pause, and the ones behind it. Ms. */
const TELL_AFTER_MS = 10_000;
const TELL_EVERY_MS = 3_600_000;

/** The time for which the faults of an event that was given back count in its next run. Ms. */
const KEPT_MS = 600_000;
/** The number of such events. The one that was given back first is forgotten first. */
const KEPT_MOST = 10_000;

/** A run of an event, as the sink's pause knows it. Instants are ticks: attempts and faults, counted. */
export interface SinkRun {
  readonly id: string;
  /** When its last attempt began; 0 before the first one. */
  triedAt: number;
  /** The tick at which its last attempt failed, until another event passes. */
  faultedAt: number | undefined;
  /** The number of its faults after which another event passed. */
  proven: number;
  /** The latest fault. */
  fault: string;
  /** When that was, and until when the sink asked not to be given this event. Unix ms. */
  faultMs: number;
  notBefore: number;
  /** Until when it waits: Unix ms, from its first wait on. */
  until: number | undefined;
}

/** Thrown if the event was not at fault: the store decides what happens to it (`given_back`, admission.md §4.3). */
export class GivenBack extends PrintableError {
  override readonly name = 'GivenBack';
  readonly code = 'given_back';
}

/** The events of a pause that are reported. */
export interface PauseHooks {
  readonly begun: (fault: string) => void;
  /** Called after 10 s, then once an hour. */
  readonly lasting: (fault: string, durationMs: number) => void;
  /** Called at the end. @param isTold true if `lasting` was called. */
  readonly over: (durationMs: number, isTold: boolean) => void;
}

export interface PauseState {
  readonly paused: boolean;
  /** Unix ms. */
  readonly since?: number;
  readonly lastFault?: string;
}

/** The pause of a sink (serve.md §2.6): it decides which run may make an attempt, and when. */
export interface Pause {
  /** @param id of the event. What is known of its faults goes on if it was given back. */
  readonly begin: (id: string) => SinkRun;
  readonly end: (run: SinkRun, isGivenBack: boolean) => void;
  /** Resolves when the run may make an attempt. Rejects with `GivenBack` where it has waited too long, or `signal` fires. */
  readonly turn: (run: SinkRun, signal: AbortSignal) => Promise<void>;
  /** Ends an attempt that passed. Each attempt ends with this or one of the next two. */
  readonly passed: (run: SinkRun) => void;
  readonly faulted: (run: SinkRun, fault: string, retryAfterMs: number | undefined) => void;
  /** Ends an attempt that says nothing about the sink. */
  readonly stopped: (run: SinkRun) => void;
  readonly state: () => PauseState;
}

interface Paused {
  readonly since: number;
  /** The tick of its beginning. */
  readonly tick: number;
  /** The run with whose fault it began. */
  readonly by: SinkRun;
  fault: string;
  /** The one attempt that is running. */
  trying: SinkRun | undefined;
  /** The number of attempts so far, and the beginning of the last; at first that of the pause itself. Unix ms. */
  tries: number;
  triedAt: number;
  /** The sink asked for it with more than one event: it is left alone until then. Unix ms. */
  notBefore: number;
  /** No place is made before. Unix ms. */
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

/** @param places events that are under way at most. */
export function createPause(clock: Clock, hooks: PauseHooks, places: number): Pause {
  /** Runs whose last fault has no pass of another event behind it yet. */
  const unproven = new Set<SinkRun>();
  /** Given back with faults, by the event's id. */
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

  /** Does all that is due, and sleeps until the next. */
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

  /** If all that wait have failed in this pause, another event gets a place: that of the one that failed first. */
  function makePlace(outage: Paused, now: number): void {
    if (waiting.size < places || now < outage.placeAt) return;
    const all = [...waiting];
    if (all.some(({ run }) => run.faultedAt === undefined || run.faultedAt < outage.tick)) return;
    outage.placeAt = now + PLACE_EVERY_MS;
    const first = all.reduce((one, other) => (other.run.triedAt < one.run.triedAt ? other : one));
    waiting.delete(first);
    first.giveBack();
  }

  /** An outage is told of where events wait for its end: else nobody knows whether it goes on. */
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
      // However it ended: the next one has its turn.
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
      // An attempt that began before the pause says nothing about the sink as it is now.
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
      // One event alone may be what the sink does not take: others need not wait for it.
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
 * The run that makes the next attempt: the one whose last attempt is the longest ago. The event with which the pause
 * began comes last at first.
 */
function nextOf(waiting: Iterable<Waiting>, paused: Paused): Waiting | undefined {
  const rank = ({ run }: Waiting): number => (isBeginner(run, paused) ? Infinity : run.triedAt);
  let next: Waiting | undefined;
  for (const one of waiting) if (!next || rank(one) < rank(next)) next = one;
  return next;
}

const isBeginner = (run: SinkRun, { tries, by }: Paused): boolean => tries === 0 && run === by;

/** The time of the next attempt: at once with another event than the one that failed, then once a second. */
function dueAt({ run }: Waiting, paused: Paused): number {
  const { tries, since, triedAt, notBefore } = paused;
  const at = tries === 0 && !isBeginner(run, paused) ? since : triedAt + EVERY_MS;
  return Math.max(at, notBefore, run.notBefore);
}

/**
 * The end of the wait of the run that is next. It is not given back just before its attempt, because a sink with few
 * events would then be tried less often.
 */
function endOfNext(one: Waiting, paused: Paused): number {
  const due = dueAt(one, paused);
  return due <= one.until + EVERY_MS ? due : one.until;
}
