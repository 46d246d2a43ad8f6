// Records the events that this process is running, so that none starts twice. Suspects (events whose process ended
// while running them) run one at a time (admission.md §4.6, §4.7).
// Made once per receiver; used by `admit`, `dispatch`, the worker and redrives.

import { requestsMayShare } from '../shared/single-flight.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Config } from '../config/resolve-options.ts';
import type { Store } from '../stores/store.ts';

/** Identifies an event as the store does: by sender and idempotency key. */
export interface EventName {
  readonly sender: string;
  readonly key: string;
}

/** An event whose handler is about to be called. */
export interface RunStart extends EventName {
  /** The event's id for handlers, derived from sender and key. */
  readonly deliveryId: string;
  /** True if the process of an earlier run ended while it had the lease (admission.md §4.6). */
  readonly suspect: boolean;
  /** The id of the event's task. Present for deliveries only. */
  readonly taskId?: string | undefined;
}

/** The events that this process runs, with the lease of a delivery, a worker or a redrive (admission.md §4.7). */
export interface Running {
  /** Returns the id of this process, which is stored with its leases. */
  readonly process: () => string;
  readonly has: (deliveryId: string) => boolean;
  /** Returns the idempotency key of the event that this process runs for this task; undefined if there is none. */
  readonly keyOf: (sender: string, taskId: string) => string | undefined;
  readonly all: () => readonly EventName[];
  readonly hasSuspect: () => boolean;
  /**
   * Reserves this process's only slot for suspects, then calls `ask` to lease one. Two suspects must not run together,
   * because each would be charged with the other's crash. If a suspect runs or the slot is reserved, resolves with
   * `undefined` without calling `ask`.
   *
   * If `isLeased` is true for the answer of `ask`, the slot stays reserved until `begin` or `release`, at most for
   * `leaseMs`. If `ask` rejects, the lease may have been granted all the same, so the slot stays reserved for
   * `leaseMs`.
   * @param holder a delivery id, or `WORKER`.
   */
  readonly askAlone: <T>(
    holder: string,
    ask: () => Promise<T>,
    isLeased: (answer: T) => boolean,
  ) => Promise<T | undefined>;
  /** Frees the slot for suspects if `holder` has reserved it. */
  readonly release: (holder: string) => void;
  /**
   * Registers an event as running. Undefined if it must not start: it runs here already, or is a suspect while
   * another suspect runs. Call the returned function twice: when the handler has settled, and when the store has
   * recorded the end or never will. Until both calls, at most for `maxRunMs`, the event counts as running.
   */
  readonly begin: (start: RunStart) => (() => void) | undefined;
  /**
   * Called when a lease is renewed: tells the store that this process is alive, once for all leases. Never rejects.
   */
  readonly beat: () => void;
  /** Tells the store now that this process is alive. Rejects if the store cannot be reached. */
  readonly announce: () => Promise<void>;
}

/**
 * The name under which a worker reserves the slot for suspects, before it knows the event that it will lease. No
 * delivery id is equal to it.
 */
export const WORKER = 'worker';

export interface RunningOptions {
  readonly store: Pick<Store, 'alive'>;
  readonly config: Pick<Config, 'leaseMs' | 'renewMs' | 'maxRunMs'>;
  readonly logger: SafeLogger;
  readonly newId: () => string;
}

interface RunningEvent extends EventName {
  readonly suspect: boolean;
  /** The event counts as running until `performance.now()` reaches this time, even if no end is reported. */
  readonly until: number;
  /** Sender and id of the event's task, as one text. */
  readonly task: string | undefined;
  /**
   * Number of calls that the function returned by `begin` still expects. At 0 the event no longer counts as running.
   */
  left: number;
}

/**
 * The part of `renewMs` that must pass before the store is told again that this process is alive. Every renewal of a
 * lease should tell the store, but timers fire a little early. So this part is less than 1.
 */
const BEAT_SHARE = 0.9;

const taskName = (sender: string, taskId: string): string => `${sender} ${taskId}`;

export function createRunning({ store, config, logger, newId }: RunningOptions): Running {
  // On some runtimes a request can die before its end, and its runs would count as running for `maxRunMs`. So no run is
  // remembered there.
  const remembers = requestsMayShare();
  const { leaseMs, renewMs, maxRunMs } = config;
  const runs = new Map<string, RunningEvent>();
  /** Delivery ids of running events, by sender and task. */
  const tasks = new Map<string, string>();
  let beatenAt = -Infinity;
  let reserved = { holder: '', until: -Infinity };
  // The id of this process. It is made at first use, because some runtimes give no random values before the first
  // request.
  let id: string | undefined;
  const process = (): string => (id ??= newId());

  function has(deliveryId: string): boolean {
    const run = runs.get(deliveryId);
    return run !== undefined && performance.now() < run.until;
  }

  function keyOf(sender: string, taskId: string): string | undefined {
    const run = runs.get(tasks.get(taskName(sender, taskId)) ?? '');
    return run && performance.now() < run.until ? run.key : undefined;
  }

  function all(): readonly RunningEvent[] {
    const now = performance.now();
    for (const [deliveryId, run] of runs) if (now >= run.until) forget(deliveryId, run);
    return [...runs.values()];
  }

  function forget(deliveryId: string, run: RunningEvent): void {
    if (runs.get(deliveryId) !== run) return;
    runs.delete(deliveryId);
    if (run.task !== undefined && tasks.get(run.task) === deliveryId) tasks.delete(run.task);
  }

  const hasSuspect = (): boolean => all().some(({ suspect }) => suspect);

  const isReserved = (): boolean => performance.now() < reserved.until;

  function reserve(holder: string): void {
    reserved = { holder, until: performance.now() + leaseMs };
  }

  function release(holder: string): void {
    if (reserved.holder === holder) reserved = { holder: '', until: -Infinity };
  }

  /** True if another suspect runs, or if another holder has reserved the slot for suspects. */
  function isSuspectTaken(deliveryId: string): boolean {
    return hasSuspect() || (isReserved() && reserved.holder !== deliveryId);
  }

  async function announce(): Promise<void> {
    beatenAt = performance.now();
    // Every lease was renewed less than `renewMs` ago, so it lasts at least as long as this row. Otherwise an expired
    // lease of a dead process would seem to belong to a living process.
    await store.alive?.({ process: process(), forMs: leaseMs - renewMs });
  }

  return {
    process,
    has,
    keyOf,
    all: () => all().map(({ sender, key }) => ({ sender, key })),
    hasSuspect,
    async askAlone(holder, ask, isLeased) {
      if (remembers && (hasSuspect() || isReserved())) return undefined;
      reserve(holder);
      try {
        const answer = await ask();
        if (!isLeased(answer)) release(holder);
        return answer;
      } catch (error) {
        reserve(holder);
        throw error;
      }
    },
    release,
    begin({ deliveryId, sender, key, suspect, taskId }) {
      if (!remembers) return () => {};
      if (has(deliveryId) || (suspect && isSuspectTaken(deliveryId))) return undefined;
      if (suspect) release(deliveryId);
      const task = taskId === undefined ? undefined : taskName(sender, taskId);
      const run: RunningEvent = { sender, key, suspect, task, until: performance.now() + maxRunMs, left: 2 };
      runs.set(deliveryId, run);
      if (task !== undefined) tasks.set(task, deliveryId);
      return () => {
        run.left -= 1;
        if (run.left === 0) forget(deliveryId, run);
      };
    },
    beat() {
      if (!store.alive || performance.now() - beatenAt < BEAT_SHARE * renewMs) return;
      announce().catch((error: unknown) => {
        // This failure ends no run. If the store wrongly charges a crash, the charge is taken back when this process
        // reaches the store again.
        logger.warn({ err: error }, 'the store could not record that this process is alive');
      });
    },
    announce,
  };
}
