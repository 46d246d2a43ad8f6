import { settledWithin } from '../shared/time-limits.ts';
import { ConfigError, Fault, isOfKind } from '../shared/errors.ts';
import type { ReadyContext, ReceiverContext } from '../receiver/context.ts';
import { giveBack } from '../stages/give-back.ts';
import { started, type Started } from '../stages/admitted-event.ts';
import { WORKER } from '../stages/running.ts';
import type { LeasedEvent, StoreInbox } from '../stores/store.ts';
import type { WakeSignal } from './wake-signal.ts';
import { createFailures, createWorkCycle, type Next, runLeased, wonOf } from './work-cycle.ts';

/** Leases what is due and runs it, in this process. */
export interface Worker {
  /** Begins; called again, nothing. */
  readonly start: () => void;
  /**
   * Leases nothing more, gives back what has not begun, and waits for the handlers that run, at most `graceMs`;
   * when three quarters of it are over, their signals fire. Ms.
   */
  readonly stop: (graceMs: number) => Promise<void>;
}

/** How long workers leave alone what was given to one that runs it already. Ms. */
const AGAIN_MS = 1_000;

/** Handlers under way. */
interface Runs {
  readonly size: () => number;
  readonly begin: (run: Started) => void;
  readonly abort: (reason: Fault) => void;
  readonly settled: () => Promise<unknown>;
}

function createRuns(context: ReadyContext, wakeSignal: WakeSignal): Runs {
  const running = new Map<AbortController, Promise<void>>();
  return {
    size: () => running.size,
    begin(one) {
      const abort = new AbortController();
      const run = runLeased(one, context, abort).finally(() => {
        running.delete(abort);
        // A handler is free, and perhaps a task.
        wakeSignal.notify();
      });
      running.set(abort, run);
    },
    abort: (reason) => {
      for (const abort of running.keys()) abort.abort(reason);
    },
    settled: () => Promise.all(running.values()),
  };
}

/** Waits for `over`, at most `graceMs`; `warn` is called when three quarters of that have passed. */
async function waitFor(over: Promise<unknown>, graceMs: number, warn: () => void): Promise<void> {
  const warning = setTimeout(warn, graceMs * 0.75);
  await settledWithin(over, graceMs);
  clearTimeout(warning);
}

/** @param inbox the store's. */
export function createWorker(context: ReadyContext, inbox: StoreInbox, wakeSignal: WakeSignal): Worker {
  const { running } = context;
  const { concurrency, batch, pollMs } = context.config.worker;
  const runs = createRuns(context, wakeSignal);
  const round = createWorkCycle(context, inbox);
  let next: Next = 'any';
  let stopping = false;
  let working: Promise<void> | undefined;

  async function take(event: LeasedEvent): Promise<void> {
    const { sender, key, lease } = event;
    const unstarted = { sender, key, owner: lease.owner };
    // A suspect takes the place at once, under its own name.
    running.release(WORKER);
    if (stopping) return giveBack(unstarted, context);
    const run = started(wonOf(event, context), running);
    // Of a store that knows no `except`: what it gives a second time is not started a second time.
    if (!run) return giveBack(unstarted, context, AGAIN_MS);
    runs.begin(run);
  }

  /** How many events may be leased now: one and nothing beside it where it is to be a suspect (admission.md §4.6). */
  function room(): number {
    if (next === 'alone') return running.all().length > 0 ? 0 : 1;
    return running.hasSuspect() ? 0 : Math.min(concurrency - runs.size(), batch);
  }

  async function look(): Promise<number> {
    const max = room();
    if (max <= 0) return pollMs;
    const result = await round.lease({ max, next }, take);
    next = result.next;
    return result.idleMs;
  }

  async function work(): Promise<void> {
    for (;;) {
      if (stopping) return;
      context.watchQueue();
      const idleMs = await look();
      if (idleMs <= 0 || stopping) continue;
      const began = performance.now();
      await wakeSignal.wait(idleMs);
      round.wasIdle(Math.min(idleMs, performance.now() - began));
    }
  }

  return {
    start: () => {
      if (!stopping) working ??= work();
    },
    async stop(graceMs) {
      stopping = true;
      wakeSignal.notify();
      // A call of the store that is under way may bring events still; they are given back.
      const over = Promise.resolve(working).then(() => runs.settled());
      await waitFor(over, graceMs, () => runs.abort(new Fault('shutting_down', 'the worker stops')));
      const left = runs.size();
      if (left > 0)
        context.logger.error(
          { running: left },
          'handlers are still running: their events are due again when their leases end',
        );
    },
  };
}

/**
 * Begins the worker of a started receiver (admission.md §4.14). A store that is away is not a reason to give up: a process that starts
 * with its database would else have to be started again by somebody.
 * @param stopping ends the tries.
 * @param begin gets the worker that is to be begun.
 * @throws ConfigError (rejects) where the startup check throws one.
 */
export async function startWorker(
  context: ReceiverContext,
  stopping: AbortSignal,
  begin: (worker: Worker) => void,
): Promise<void> {
  const { store, wakeSignal, startup, notes } = context;
  const inbox = store.inbox as StoreInbox;
  wakeSignal.listened = true;
  notes.worker.state = 'starting';
  const failures = createFailures(context);
  while (!stopping.aborted) {
    try {
      const ready = await startup.passed();
      if (stopping.aborted) return;
      begin(createWorker(ready, inbox, wakeSignal));
      return;
    } catch (error) {
      if (stopping.aborted) return;
      if (isOfKind(error, ConfigError)) {
        notes.worker.state = 'off';
        throw error;
      }
      await wakeSignal.wait(failures.delayAfter(error, 'the worker could not start yet'));
    }
  }
}
