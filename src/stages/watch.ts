import type { SafeLogger } from '../logging.ts';
import { Fault } from '../errors.ts';
import { requestsMayShare } from '../single-flight.ts';
import type { Store } from '../stores/contract.ts';
import { backgroundTimer } from '../time-limits.ts';

export interface LeaseKeeper {
  /** Resolves when the run is over: the store says that the lease is lost, or `maxRunMs` is over. Never rejects. */
  readonly ended: Promise<'lost' | 'abandoned'>;
  /** Stops renewing; the lease stays as it is. */
  readonly stop: () => void;
}

interface LeaseRequest {
  readonly store: Pick<Store, 'renew'>;
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly maxRunMs: number;
  readonly log: SafeLogger;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
  /** As of `Running`. */
  readonly beat: () => void;
}

/** Renews once, one at a time; says whether the lease may still be ours. */
function createRenewal(request: LeaseRequest): () => Promise<boolean> {
  const { store, log, sender, key, owner, leaseMs } = request;
  let renewing = false;
  return async () => {
    if (renewing) return true;
    renewing = true;
    try {
      return (await store.renew({ sender, key, owner, leaseMs })) === 'renewed';
    } catch (error) {
      // The lease may run out meanwhile. A store that was away for everybody still takes the renewal of its owner, and
      // what somebody else has by then is lost when the store says so: the fence is for that.
      log.warn({ err: error }, 'a lease could not be renewed');
      return true;
    } finally {
      renewing = false;
    }
  };
}

/**
 * Renews a lease until told to stop. JavaScript cannot stop a handler, and a lease released under one that runs
 * would let two overlap; so it is renewed past the handler's deadline, up to `maxRunMs` (a crash, for the store).
 */
export function keepLease(request: LeaseRequest): LeaseKeeper {
  const { renewMs, maxRunMs, closed, beat } = request;
  const isHeld = createRenewal(request);
  let stop = (): void => {};

  const ended = new Promise<'lost' | 'abandoned'>((resolve) => {
    const end = (why: 'lost' | 'abandoned'): void => {
      stop();
      resolve(why);
    };
    const renew = async (): Promise<void> => {
      beat();
      if (!(await isHeld())) end('lost');
    };
    // A handler that never settles must not hold a process that is stopping; one at work has its own I/O.
    const tick = (): (() => void) =>
      backgroundTimer(() => {
        cancelTick = tick();
        void renew();
      }, renewMs);
    let cancelTick = tick();
    const cancelLimit = backgroundTimer(() => end('abandoned'), maxRunMs);
    stop = () => {
      cancelTick();
      cancelLimit();
      closed.removeEventListener('abort', stop);
    };
    if (closed.aborted) stop();
    else closed.addEventListener('abort', stop);
  });
  return { ended, stop };
}

/** How a handler's run ended. `lost`: the store says that another owner has the event. `abandoned`: `maxRunMs` is over. */
export type RunEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'lost' }
  | { readonly kind: 'abandoned' };

/** The deadline is over, and the handler still runs. */
export interface DeadlineExceeded {
  readonly kind: 'overrun';
  /** How it ends. Never rejects. */
  readonly finished: Promise<RunEnd>;
}

/** What waits for the next turn. One that is settled before leaves again, so that nothing of it is kept till then. */
export interface Waiter {
  begin(self: Waiter): void;
}

/** The next turn of the event loop, for what most runs do not need by then: one timer for all that wait for it. */
export interface NextTurn {
  /** Calls `begin` when this turn is over, unless it leaves before. */
  readonly wait: (waiter: Waiter) => void;
  readonly leave: (waiter: Waiter) => void;
}

/** Where one request's timer may not serve another (`requestsMayShare`), `begin` is called at once. */
export function createNextTurn(): NextTurn {
  if (!requestsMayShare()) return { wait: (waiter) => waiter.begin(waiter), leave() {} };
  let waiting = new Set<Waiter>();
  let timed = false;
  const turn = (): void => {
    const due = waiting;
    waiting = new Set();
    timed = false;
    for (const waiter of due) waiter.begin(waiter);
  };
  return {
    wait(waiter) {
      waiting.add(waiter);
      if (timed) return;
      timed = true;
      setTimeout(turn, 0);
    },
    leave: (waiter) => void waiting.delete(waiter),
  };
}

/** What a run that outlasts its first turn needs: its lease renewed, and an end to the wait for it. */
export interface WatchRequest {
  readonly lease: LeaseRequest;
  /** When the run began, on the clock of `performance.now()`. */
  readonly began: number;
  readonly abort: AbortController;
  readonly handlerDeadlineMs: number;
  /** The lease is over, and what the handler has under way is to be given up: with this, as its signal. */
  readonly givenUp: (why: Fault) => void;
  /** Called once: how the run ended, or that it goes on past its deadline. */
  readonly tell: (end: RunEnd | DeadlineExceeded) => void;
}

interface Watch {
  /** To be called by what runs the handler, when it is done. */
  readonly ended: (end: RunEnd) => void;
  /** The lease is renewed no more. */
  readonly stop: () => void;
}

interface WatchedRun extends Waiter {
  /** Undefined once the run is settled: one that begins its turn then has nothing to watch. */
  request: WatchRequest | undefined;
  hasEnded: boolean;
  keeper: LeaseKeeper | undefined;
  cancelDeadline: (() => void) | undefined;
  /** Told of the end, or of the overrun; after an overrun, of the end that comes then. */
  tell: (end: RunEnd | DeadlineExceeded) => void;
}

const silent = (): void => {};

function finish(run: WatchedRun, end: RunEnd): void {
  if (run.hasEnded) return;
  run.hasEnded = true;
  run.cancelDeadline?.();
  run.tell(end);
}

function overrun(run: WatchedRun): void {
  const { tell } = run;
  const finished = new Promise<RunEnd>((resolve) => {
    run.tell = resolve as WatchedRun['tell'];
  });
  tell({ kind: 'overrun', finished });
}

function arm(run: WatchedRun): void {
  const { request } = run;
  if (!request) return;
  const { lease, began, abort, handlerDeadlineMs, givenUp } = request;
  const giveUp = (kind: 'lost' | 'abandoned'): void => {
    const why = new Fault(kind === 'lost' ? 'lease_lost' : 'handler_timeout', 'the lease is over');
    abort.abort(why);
    givenUp(why);
    finish(run, { kind });
  };
  run.keeper = keepLease(lease);
  void run.keeper.ended.then(giveUp);
  if (run.hasEnded) return;
  const leftMs = handlerDeadlineMs - (performance.now() - began);
  // As in `keepLease`: a receiver that has stopped is not to be kept alive by a handler that never settles.
  run.cancelDeadline = backgroundTimer(
    () => {
      abort.abort(new Fault('handler_timeout', `the handler ran over ${handlerDeadlineMs} ms`));
      overrun(run);
    },
    Math.max(0, leftMs),
  );
}

/** Timers are made for a run that is not settled within its turn: most handlers of a fast store are. */
export function watchRun(turns: NextTurn, request: WatchRequest): Watch {
  const { tell } = request;
  const run: WatchedRun = {
    begin: arm,
    request,
    hasEnded: false,
    keeper: undefined,
    cancelDeadline: undefined,
    tell,
  };
  turns.wait(run);
  return {
    ended: (end) => finish(run, end),
    stop() {
      turns.leave(run);
      run.request = undefined;
      run.tell = silent;
      run.keeper?.stop();
    },
  };
}
