// Leases due events repeatedly and runs their handlers, a limited number at a time (admission.md §4.14).
// Started by `receiver.start()` through `work.ts`; `work-cycle.ts` makes the calls of the store.

import { settledWithin } from '../shared/time-limits.ts';
import { ConfigError, Fault, isOfKind } from '../shared/errors.ts';
import type { ReadyContext, ReceiverContext } from '../receiver/context.ts';
import { giveBack } from '../stages/give-back.ts';
import { started, type Started } from '../stages/admitted-event.ts';
import { WORKER } from '../stages/running.ts';
import type { LeasedEvent, StoreInbox } from '../stores/store.ts';
import type { WakeSignal } from './wake-signal.ts';
import { createFailures, createWorkCycle, type Next, runLeased, wonOf } from './work-cycle.ts';

/** A worker, which leases due events and runs them in this process. */
export interface Worker {
  /** Starts to lease events. A second call does nothing. */
  readonly start: () => void;
  /**
   * Leases no more events, returns events that were not started, and waits for running handlers, at most `graceMs`
   * (ms). After three quarters of that time the handlers' signals abort.
   */
  readonly stop: (graceMs: number) => Promise<void>;
}

/**
 * If the store leases an event that this process already runs, the worker returns it. The event is then not leased
 * again for this time. Ms.
 */
const AGAIN_MS = 1_000;

/** The handlers that this worker is running. */
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
        // A handler is free now, and perhaps another event of the same task can run. So the worker looks for events
        // immediately.
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

/** Waits for `over`, at most `graceMs`. Calls `warn` after three quarters of that time. */
async function waitFor(over: Promise<unknown>, graceMs: number, warn: () => void): Promise<void> {
  const warning = setTimeout(warn, graceMs * 0.75);
  await settledWithin(over, graceMs);
  clearTimeout(warning);
}

/** Creates a worker, which does nothing before `start`. */
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
    // Frees this process's slot for suspects (events whose process died while they ran), which the worker reserved
    // before it leased. If this event is a suspect, `started` takes the slot again.
    running.release(WORKER);
    if (stopping) return giveBack(unstarted, context);
    const run = started(wonOf(event, context), running);
    // `started` returned undefined: the event already runs here, e.g. because the store ignores `except`. It is given
    // back, and not started a second time.
    if (!run) return giveBack(unstarted, context, AGAIN_MS);
    runs.begin(run);
  }

  /**
   * Returns the number of events that may be leased now. A suspect (an event whose process died while it ran) must run
   * alone (admission.md §4.6). So it is leased only if nothing else runs, and nothing is leased while it runs.
   */
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
      // A call of the store that is in progress may still lease events. `take` gives these events back to the queue.
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
 * Starts the worker of a started receiver (admission.md §4.14). If the store is unreachable, it tries again, so that a
 * process may start before its database.
 * @param stopping ends the attempts to start.
 * @param begin receives the worker and starts it.
 * @throws ConfigError (rejects) if the startup check throws one.
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
