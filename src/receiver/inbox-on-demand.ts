import type { Observe } from '../events/observation.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { ReceiverContext } from './context.ts';
import { once } from '../shared/single-flight.ts';
import type { ReceiverInbox } from '../inbox/inbox-contract.ts';
import type { Worker } from '../inbox/worker.ts';

/** `Worker`, but that to begin takes a while. */
interface WorkerOnDemand extends Pick<Worker, 'stop'> {
  /** `Receiver.start`. */
  readonly start: () => Promise<void>;
}

/** The worker of a process that calls `start`; the code of it is loaded then. */
export function workerOnDemand(context: ReceiverContext): WorkerOnDemand {
  let worker: Worker | undefined;
  let starting: Promise<void> | undefined;
  const begin = (make: () => Worker): void => (worker ??= make()).start();
  return {
    start: () =>
      (starting ??= import('../inbox/work.ts')
        .then(({ startWorker }) => startWorker(context, begin))
        .finally(() => {
          starting = undefined;
        })),
    stop: async (graceMs) => {
      // One that has not begun yet waits for the next try.
      context.wakeSignal.notify();
      if (context.notes.worker.state !== 'off') context.notes.worker.state = 'stopped';
      await worker?.stop(graceMs);
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
