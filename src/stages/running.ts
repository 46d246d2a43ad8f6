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
  /** Of sender and key. */
  readonly deliveryId: string;
  /** A lease of it ended with its process (admission.md §4.6). */
  readonly suspect: boolean;
  /** Of a delivery. */
  readonly taskId?: string | undefined;
}

/** What this process runs, however it was leased: by a delivery, a worker, a redrive (admission.md §4.7). */
export interface Running {
  /** Id of this process, for the leases that it takes. */
  readonly process: () => string;
  readonly has: (deliveryId: string) => boolean;
  /** Key of the delivery of this task that runs here. */
  readonly keyOf: (sender: string, taskId: string) => string | undefined;
  readonly all: () => readonly EventName[];
  readonly hasSuspect: () => boolean;
  /**
   * Asks for a suspect's lease, and keeps this process's one place for a suspect first: of two that are leased at once each
   * would be charged with the other's crash. Resolves with `undefined`, and asks nothing, where a suspect runs or the place
   * is kept for one. Where `isLeased` says so of the answer, the place stays kept until `begin` or `release`, at most for a
   * lease. Where `ask` rejects, the lease may have been given all the same: the place stays kept for one lease.
   * @param holder a delivery id, or `WORKER`.
   */
  readonly askAlone: <T>(
    holder: string,
    ask: () => Promise<T>,
    isLeased: (answer: T) => boolean,
  ) => Promise<T | undefined>;
  /** Frees the place, if it is kept for `holder`. */
  readonly release: (holder: string) => void;
  /**
   * Undefined where it runs here already, or is a suspect and another one runs: it must not be started. Else to be
   * called twice: when its handler has settled, and when the store knows, or will not be told. Until both, and at
   * most for `maxRunMs`, it counts as running.
   */
  readonly begin: (start: RunStart) => (() => void) | undefined;
  /** A lease is renewed about now: keeps the process's row alive, one call for all leases. Never rejects. */
  readonly beat: () => void;
  /** Tells the store at once that this process is alive. Rejects where the store cannot be reached. */
  readonly announce: () => Promise<void>;
}

/** Holder of the place for a suspect of which a worker does not know yet which event it is; no delivery id. */
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
  /** Of the two ends of `begin`. */
  left: number;
}

/** Timers come a little early: the one lease of a process is to bring a beat with each renewal. */
const BEAT_SHARE = 0.9;

const taskName = (sender: string, taskId: string): string => `${sender} ${taskId}`;

export function createRunning({ store, config, logger, newId }: RunningOptions): Running {
  // Where a request can end without an end of its own, what it ran would count as running for `maxRunMs`: nothing is
  // remembered there.
  const remembers = requestsMayShare();
  const { leaseMs, renewMs, maxRunMs } = config;
  const runs = new Map<string, RunningEvent>();
  /** Delivery ids of those that run, by their tasks. */
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

  /** Whether another suspect runs, or is about to. */
  function isSuspectTaken(deliveryId: string): boolean {
    return hasSuspect() || (isReserved() && reserved.holder !== deliveryId);
  }

  async function announce(): Promise<void> {
    beatenAt = performance.now();
    // Every lease that is kept was renewed within the last `renewMs`: of a process that dies, the row is over no later
    // than its leases, so that none of them looks like one that a living process has let go.
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
        // No run ends for it: a crash that is charged wrongly is taken back once this process is heard again.
        logger.warn({ err: error }, 'the store could not record that this process is alive');
      });
    },
    announce,
  };
}
