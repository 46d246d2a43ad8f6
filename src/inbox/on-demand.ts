import { ConfigError } from '../errors.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { Parts } from '../parts.ts';
import type { ReceiverInbox } from './contract.ts';
import type { Worker } from './worker.ts';

const NO_WORKER =
  "start: in mode 'inline' handlers run before the reply and there is no worker. Leave start out, or set mode: 'inbox'.";

/** `Worker`, but that to begin takes a while. */
interface WorkerOnDemand extends Pick<Worker, 'stop'> {
  /** @throws ConfigError (rejects) in mode `inline`, after `stop`, and where the startup check fails. */
  readonly start: () => Promise<void>;
}

/** The worker of a process that calls `start`; the code of it is loaded then. */
export function workerOnDemand(parts: Parts, lifecycle: Lifecycle): WorkerOnDemand {
  let worker: Worker | undefined;
  return {
    async start() {
      const { config, store, bell } = parts;
      if (config.mode !== 'inbox' || !store.inbox) throw new ConfigError(NO_WORKER);
      if (lifecycle.stopping()) throw new ConfigError('start: the receiver was stopped. Make a new one.');
      const [{ createWorker }, equipped] = await Promise.all([import('./worker.ts'), parts.startup.passed()]);
      if (lifecycle.stopping()) return;
      worker ??= createWorker(equipped, store.inbox, bell);
      worker.start();
    },
    stop: async (graceMs) => worker?.stop(graceMs),
  };
}

/** `receiver.inbox`; the code of it is loaded when one of its methods is called. */
export function inboxOnDemand(parts: Parts, lifecycle: Lifecycle): ReceiverInbox {
  const inbox = async (): Promise<ReceiverInbox> =>
    (await import('./operate.ts')).createReceiverInbox(parts, lifecycle);
  return {
    list: async (query) => (await inbox()).list(query),
    inspect: async (sender, key) => (await inbox()).inspect(sender, key),
    redrive: async (sender, key) => (await inbox()).redrive(sender, key),
    discard: async (sender, key) => (await inbox()).discard(sender, key),
  };
}
