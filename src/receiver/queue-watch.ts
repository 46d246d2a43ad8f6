import { processTimer } from '../shared/single-flight.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Config } from '../config/resolve-options.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Store } from '../stores/store.ts';
import type { WakeSignal } from '../inbox/wake-signal.ts';

/** One look never follows another sooner than after this share of `queueUnattendedMs`. */
const SHORTEST_SHARE = 0.1;

interface WatchedParts {
  readonly wakeSignal: WakeSignal;
  /** Aborts when the receiver has stopped. */
  readonly closed: () => AbortSignal;
  readonly config: Pick<Config, 'queueUnattendedMs'>;
  readonly logger: SafeLogger;
  readonly raiseAlarm: RaiseAlarm;
  readonly store: Pick<Store, 'inbox'>;
}

/** Hears of what is queued. */
export interface QueueWatch {
  /** An event was queued: a worker has something to do. */
  readonly queued: () => void;
  /** A worker is about to look for events: where it does not come to lease them, somebody is told. */
  readonly watchQueue: () => void;
}

/**
 * Says so where nobody leases what is queued (admission.md §4.13), in a process that only receives too. A look is set for
 * `queueUnattendedMs` after an event was queued, or a worker looked for one: one at a time, none where nothing comes, and
 * no delivery waits for it. No looks where a timer ends with the request that set it (`processTimer`).
 */
export function createQueueWatch(context: WatchedParts): QueueWatch {
  const { wakeSignal, closed, config, logger, raiseAlarm, store } = context;
  const limitMs = config.queueUnattendedMs;
  let isSet = false;
  let isFirst = true;

  function set(ms: number): void {
    isSet = true;
    processTimer(() => void look(), ms);
  }

  async function look(): Promise<void> {
    // Before it asks: what is queued meanwhile may not be in the answer, and sets the next look.
    isSet = false;
    // A store that cannot say is heard of by deliveries and workers.
    const overdueMs = await (async () => store.inbox?.overdueMs?.())().catch(() => undefined);
    if (overdueMs === undefined || closed().aborted) return;
    if (overdueMs >= limitMs) raise(overdueMs);
    if (isSet) return;
    set(Math.max(overdueMs < limitMs ? limitMs - overdueMs : limitMs, limitMs * SHORTEST_SHARE));
  }

  function raise(overdueMs: number): void {
    const message = `an event has been due for ${Math.floor(overdueMs / 1000)} s and no worker has leased it. Call receiver.start() on this store in a process that keeps running. If one runs, it falls behind: raise worker.concurrency, or add a process`;
    raiseAlarm({ code: 'queue_unattended', overdueMs, message });
  }

  function watchQueue(): void {
    if (!isSet) set(limitMs);
  }

  return {
    watchQueue,
    queued() {
      wakeSignal.notify();
      if (isFirst && !wakeSignal.listened) {
        logger.info(
          {},
          'this process queues events and has not called receiver.start(): another process has to run them',
        );
      }
      isFirst = false;
      watchQueue();
    },
  };
}
