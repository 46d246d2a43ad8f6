// Loads the code of the worker, `receiver.inbox` and `receiver.observe` at first use, so that the main bundle stays
// small.
// Called by the receiver; the loaded code is `src/inbox/work.ts`.

import type { Observe } from '../events/observation.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { ReceiverContext } from './context.ts';
import { once } from '../shared/single-flight.ts';
import type { ReceiverInbox } from '../inbox/inbox-contract.ts';
import type { Worker } from '../inbox/worker.ts';

/** A `Worker` that takes time to start, and that may be started again after `stop`. */
interface WorkerOnDemand extends Pick<Worker, 'stop'> {
  /** Resolves when the worker runs, or when `stop` is called before. */
  readonly start: () => Promise<void>;
}

/** Makes the worker, whose code is loaded when `start` is called. */
export function workerOnDemand(context: ReceiverContext): WorkerOnDemand {
  const { notes, wakeSignal } = context;
  let worker: Worker | undefined;
  let stopping = new AbortController();
  return {
    start: async () => {
      const { signal } = (stopping = new AbortController());
      const { startWorker } = await import('../inbox/work.ts');
      await startWorker(context, signal, (made) => {
        worker = made;
        made.start();
      });
    },
    stop: async (graceMs) => {
      stopping.abort();
      // Wakes a worker that waits for its next attempt to start, so that it notices the stop immediately.
      wakeSignal.notify();
      if (notes.worker.state !== 'off') notes.worker.state = 'stopped';
      await worker?.stop(graceMs);
      worker = undefined;
    },
  };
}

/** Makes `receiver.inbox`, whose code is loaded when one of its methods is first called. */
export function inboxOnDemand(context: ReceiverContext, lifecycle: Lifecycle): ReceiverInbox {
  const inbox = async (): Promise<ReceiverInbox> =>
    (await import('../inbox/work.ts')).createReceiverInbox(context, lifecycle);
  return {
    list: async (query) => (await inbox()).list(query),
    inspect: async (sender, key) => (await inbox()).inspect(sender, key),
    redrive: async (sender, key) => (await inbox()).redrive(sender, key),
    discard: async (sender, key) => (await inbox()).discard(sender, key),
    stats: async (query) => (await inbox()).stats(query),
    redriveMany: async (query) => (await inbox()).redriveMany(query),
    discardMany: async (query) => (await inbox()).discardMany(query),
  };
}

/** Makes `receiver.observe`, whose code is loaded at the first call. */
export function observeOnDemand(context: ReceiverContext): Observe {
  const observe = once(async () => (await import('../inbox/work.ts')).observeWith(context));
  return async (observation) => (await observe())(observation);
}
