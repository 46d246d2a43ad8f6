import { PrintableError } from '../../index.ts';
import { onAbort } from './on-abort.ts';

/** Passed in, so that tests have hours in a moment. */
export interface Clock {
  /** Unix ms, which only grow. */
  readonly now: () => number;
  /** Resolves after so much time; early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Attempts at a paused sink are so far apart. Ms. */
const EVERY_MS = 1_000;
/** An event waits so long for the end of pauses; the sink is left alone for so long at its own wish. Ms. */
const LONGEST_MS = 60_000;
/** The first alarm of a pause, and the ones behind it. Ms. */
const TELL_AFTER_MS = 10_000;
const TELL_EVERY_MS = 3_600_000;

/** A run of an event, as the sink's pause knows it. Instants are ticks: attempts and faults, counted. */
export interface SinkRun {
  /** When its last attempt began; 0 before the first one. */
  triedAt: number;
  /** When its last attempt failed, until another event passes. */
  faultedAt: number | undefined;
  /** Its faults behind which another event passed. */
  proven: number;
  /** The last one. */
  fault: string;
  /** Until when it waits: Unix ms, from its first wait on. */
  until: number | undefined;
}

/** What happens to the event is the store's to decide: it was not the event's fault (`given_back`, admission.md §4.3). */
export class GivenBack extends PrintableError {
  override readonly name = 'GivenBack';
  readonly code = 'given_back';
}

/** What a pause tells. */
export interface PauseHooks {
  readonly begun: (fault: string) => void;
  /** After 10 s, then once an hour. */
  readonly lasting: (fault: string, durationMs: number) => void;
  /** @param isTold whether `lasting` was called. */
  readonly over: (durationMs: number, isTold: boolean) => void;
}

export interface PauseState {
  readonly paused: boolean;
  /** Unix ms. */
  readonly since?: number;
  readonly lastFault?: string;
}

/** The pause of a sink (serve.md §2.6): who may make an attempt, and when. */
export interface Pause {
  readonly begin: () => SinkRun;
  readonly end: (run: SinkRun) => void;
  /** Resolves when the run may make an attempt. Rejects with `GivenBack` where it has waited too long, or `signal` fires. */
  readonly turn: (run: SinkRun, signal: AbortSignal) => Promise<void>;
  /** One of these ends each attempt. */
  readonly passed: (run: SinkRun) => void;
  readonly faulted: (run: SinkRun, fault: string, retryAfterMs: number | undefined) => void;
  /** Neither: it says nothing of the sink. */
  readonly stopped: (run: SinkRun) => void;
  readonly state: () => PauseState;
}

interface Paused {
  readonly since: number;
  /** When it began, as a tick. */
  readonly tick: number;
  /** Whose fault it began with. */
  readonly by: SinkRun;
  fault: string;
  /** The one attempt that is under way. */
  trying: SinkRun | undefined;
  /** Attempts so far, and when the last one began; at first the pause itself. Unix ms. */
  tries: number;
  triedAt: number;
  /** The sink asked to be left alone until then. Unix ms. */
  notBefore: number;
  tellAt: number;
  isTold: boolean;
}

interface Waiting {
  readonly run: SinkRun;
  readonly until: number;
  readonly go: () => void;
  readonly giveBack: () => void;
}

export function createPause(clock: Clock, hooks: PauseHooks): Pause {
  const runs = new Set<SinkRun>();
  const waiting = new Set<Waiting>();
  let tick = 0;
  let paused: Paused | undefined;
  let timer = new AbortController();

  function admit(one: Waiting): void {
    waiting.delete(one);
    one.run.triedAt = tick += 1;
    one.go();
  }

  /** Whatever is due is done, and what is due next is slept for. */
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
    // One that has waited for long enough had its last attempt just now.
    if (until <= clock.now() && waiting.delete(one)) giveBack();
    stir();
    try {
      await promise;
    } finally {
      takeBack();
    }
  }

  return {
    begin() {
      const run = { triedAt: 0, faultedAt: undefined, proven: 0, fault: '', until: undefined };
      runs.add(run);
      return run;
    },
    end(run) {
      runs.delete(run);
      // However it ended: the next one has its turn.
      if (paused?.trying === run) stopped(run);
    },
    turn,
    passed(run) {
      for (const other of runs) {
        if (other === run || other.faultedAt === undefined || other.faultedAt > run.triedAt) continue;
        other.proven += 1;
        other.faultedAt = undefined;
      }
      // What began before says nothing of the sink as it is now.
      if (paused && run.triedAt > paused.tick) open(paused);
      else stopped(run);
    },
    faulted(run, fault, retryAfterMs = 0) {
      const now = clock.now();
      run.faultedAt = tick += 1;
      run.fault = fault;
      const isNew = !paused;
      paused ??= newPause(run, fault, now);
      paused.fault = fault;
      paused.notBefore = Math.max(paused.notBefore, now + Math.min(retryAfterMs, LONGEST_MS));
      if (isNew) hooks.begun(fault);
      stopped(run);
    },
    stopped,
    state: () =>
      paused ? { paused: true, since: Math.round(paused.since), lastFault: paused.fault } : { paused: false },
  };
}

/** Who makes the next attempt: who has not made one for the longest; the event that the pause began with not at first. */
function nextOf(waiting: Iterable<Waiting>, paused: Paused): Waiting | undefined {
  const rank = ({ run }: Waiting): number => (isBeginner(run, paused) ? Infinity : run.triedAt);
  let next: Waiting | undefined;
  for (const one of waiting) if (!next || rank(one) < rank(next)) next = one;
  return next;
}

const isBeginner = (run: SinkRun, { tries, by }: Paused): boolean => tries === 0 && run === by;

/** At once with another event than the one that failed, then once a second. */
function dueAt({ run }: Waiting, paused: Paused): number {
  const { tries, since, triedAt, notBefore } = paused;
  const at = tries === 0 && !isBeginner(run, paused) ? since : triedAt + EVERY_MS;
  return Math.max(at, notBefore);
}

/** Who makes the next attempt is not given back just before it: an outage of a sink with few events would be tried less often. */
function endOfNext(one: Waiting, paused: Paused): number {
  const due = dueAt(one, paused);
  return due <= one.until + EVERY_MS ? due : one.until;
}
