// Knows which events this process is running, so that none starts twice and suspects run one at a time
// (admission.md §4.6, §4.7).
// Made once per receiver; used by `admit`, `dispatch`, the worker and redrives.

import { requestsMayShare } from '../shared/single-flight.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Config } from '../config/resolve-options.ts';
import type { Store } from '../stores/store.ts';

/** An event, as the store names it. */
export interface EventName {
  readonly sender: string;
  readonly key: string;
}

/** An event whose handler is about to be called. */
export interface RunStart extends EventName {
  /** Derived from sender and key. */
  readonly deliveryId: string;
  /** True if a lease of the event ended with its process (admission.md §4.6). */
  readonly suspect: boolean;
  /** Known for deliveries only. */
  readonly taskId?: string | undefined;
}

/**
 * Events that this process runs, by whatever lease: a delivery's, a worker's or a redrive's (admission.md
 * §4.7).
 */
export interface Running {
  /** Id of this process, for the leases that it takes. */
  readonly process: () => string;
  readonly has: (deliveryId: string) => boolean;
  /** Key of the event of this task that runs here. */
  readonly keyOf: (sender: string, taskId: string) => string | undefined;
  readonly all: () => readonly EventName[];
  readonly hasSuspect: () => boolean;
  /**
   * Asks for a suspect's lease after reserving this process's one place for suspects. If two were leased at
   * once, each would be charged with the other's crash. Resolves with `undefined` and asks nothing if a
   * suspect runs or the place is reserved.
   *
   * If `isLeased` accepts the answer, the place stays reserved until `begin` or `release`, at most for one
   * lease. If `ask` rejects, the lease may still have been given, so the place stays reserved for one lease.
   * @param holder a delivery id, or `WORKER`.
   */
  readonly askAlone: <T>(
    holder: string,
    ask: () => Promise<T>,
    isLeased: (answer: T) => boolean,
  ) => Promise<T | undefined>;
  /** Frees the place if it is reserved for `holder`. */
  readonly release: (holder: string) => void;
  /**
   * Undefined if the event runs here already, or is a suspect while another one runs: it must not be started.
   * The returned function is to be called twice: when the handler has settled, and when the store knows or
   * will not be told. Until both calls, and at most for `maxRunMs`, the event counts as running.
   */
  readonly begin: (start: RunStart) => (() => void) | undefined;
  /**
   * Keeps the process's row alive around the renewal of a lease; one call serves all leases. Never rejects.
   */
  readonly beat: () => void;
  /** Tells the store at once that this process is alive. Rejects if the store cannot be reached. */
  readonly announce: () => Promise<void>;
}

/** Holder of the place while a worker does not yet know which suspect it will lease; no delivery id. */
export const WORKER = 'worker';

export interface RunningOptions {
  readonly store: Pick<Store, 'alive'>;
  readonly config: Pick<Config, 'leaseMs' | 'renewMs' | 'maxRunMs'>;
  readonly logger: SafeLogger;
  readonly newId: () => string;
}

interface RunningEvent extends EventName {
  readonly suspect: boolean;
  /** On the clock of `performance.now()`. */
  readonly until: number;
  /** Name of its task. */
  readonly task: string | undefined;
  /** Calls of `begin`'s function that are still to come. */
  left: number;
}

/**
 * Share of `renewMs` after which a beat is sent. Timers fire a little early, and each renewal of a lone lease
 * should bring a beat.
 */
const BEAT_SHARE = 0.9;

const taskName = (sender: string, taskId: string): string => `${sender} ${taskId}`;

export function createRunning({ store, config, logger, newId }: RunningOptions): Running {
  // If a request can die without reaching its end, its runs would count as running for `maxRunMs`. Such a
  // runtime remembers nothing.
  const remembers = requestsMayShare();
  const { leaseMs, renewMs, maxRunMs } = config;
  const runs = new Map<string, RunningEvent>();
  /** Delivery ids of running events, by task. */
  const tasks = new Map<string, string>();
  let beatenAt = -Infinity;
  let reserved = { holder: '', until: -Infinity };
  // Made at first use: some runtimes give no random value before the first request.
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

  /** True if another suspect runs or is about to. */
  function isSuspectTaken(deliveryId: string): boolean {
    return hasSuspect() || (isReserved() && reserved.holder !== deliveryId);
  }

  async function announce(): Promise<void> {
    beatenAt = performance.now();
    // Every held lease was renewed within the last `renewMs`. So a dead process's row ends no later than its
    // leases, and none of them looks released by a living process.
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
        // No run ends because of this: a crash that is charged wrongly is taken back once this process is
        // heard again.
        logger.warn({ err: error }, 'the store could not record that this process is alive');
      });
    },
    announce,
  };
}
