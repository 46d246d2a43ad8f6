import type { Observe } from '../events/observation.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { ReceiverContext } from './context.ts';
import { once } from '../shared/single-flight.ts';
import type { ReceiverInbox } from '../inbox/inbox-contract.ts';
import type { Worker } from '../inbox/worker.ts';

/** `Worker`, but that to begin takes a while, and that it may begin again after `stop`. */
interface WorkerOnDemand extends Pick<Worker, 'stop'> {
  /** Resolves when the worker runs, or is to stop. */
  readonly start: () => Promise<void>;
}

/** The worker of a process that calls `start`; the code of it is loaded then. */
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
      // One that has not begun yet waits for the next try.
      wakeSignal.notify();
      if (notes.worker.state !== 'off') notes.worker.state = 'stopped';
      await worker?.stop(graceMs);
      worker = undefined;
    },
  };
}

/** `receiver.inbox`; the code of it is loaded when one of its methods is called. */
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

/** `Receiver.observe`; the code of it is loaded when it is called. */
export function observeOnDemand(context: ReceiverContext): Observe {
  const observe = once(async () => (await import('../inbox/work.ts')).observeWith(context));
  return async (observation) => (await observe())(observation);
}
