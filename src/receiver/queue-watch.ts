// Raises an alarm if no worker of any process leases the queued events (admission.md §4.13).
// Called when an event is queued or a worker requests events, even in a process without a worker.

import { processTimer } from '../shared/single-flight.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Config } from '../config/resolve-options.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Store } from '../stores/store.ts';
import type { WakeSignal } from '../inbox/wake-signal.ts';

/** Shortest time between two checks, as a share of `queueUnattendedMs`. */
const SHORTEST_SHARE = 0.1;

interface WatchedParts {
  readonly wakeSignal: WakeSignal;
  /** Returns a signal that aborts when the receiver has stopped. */
  readonly closed: () => AbortSignal;
  readonly config: Pick<Config, 'queueUnattendedMs'>;
  readonly logger: SafeLogger;
  readonly raiseAlarm: RaiseAlarm;
  readonly store: Pick<Store, 'inbox'>;
}

/** Callbacks for the queue of events: one for each event that is queued, one for each request of a worker. */
export interface QueueWatch {
  /** Called after an event was queued: wakes the worker, and schedules the check of the queue. */
  readonly queued: () => void;
  /**
   * Called before a worker requests events: schedules a check, which raises an alarm if nobody leases queued events.
   */
  readonly watchQueue: () => void;
}

/**
 * Makes the functions that raise an alarm if nobody leases queued events (admission.md §4.13), even in a process
 * without a worker. A check runs `queueUnattendedMs` after an event was queued or a worker requested events, and is
 * repeated while events are queued. At most one check is scheduled at a time, and no delivery waits for it. On runtimes
 * where a timer ends with its request (`processTimer`) there is no check.
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
    // The flag is cleared before the store is asked. An event that is queued meanwhile may be missing in the answer, so
    // that event schedules the next check.
    isSet = false;
    // A failure of the store is ignored here, because deliveries and workers report it.
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
