// Group commit: steps (operations of callers) that come in one turn of the event loop share a transaction of SQLite
// (admission.md §9.2).
// Called by `src/stores/sqlite.ts`; open.ts makes it for each connection.
import { asFault, isBusy, isConstraint, type SqliteHandle } from './handle.ts';

/** A step (an operation of one caller) that waits for its transaction. */
interface CommitJob {
  readonly alone: boolean;
  readonly step: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  waitedMs: number;
  /** True if the transaction has to end after this step. */
  isLast: boolean;
}

/**
 * The largest number of steps (operations of callers) in one transaction. The driver is synchronous, so it blocks the
 * event loop during the whole transaction.
 */
const MOST = 128;

/** Returns the number of waiting steps that share the next transaction. */
function sharing(queue: readonly CommitJob[]): number {
  let count = 0;
  for (const { alone, isLast } of queue) {
    if (alone || count === MOST) break;
    count += 1;
    if (isLast) break;
  }
  return count;
}

/**
 * Group commit: steps (operations of callers) that come in one turn of the event loop share one transaction. So they
 * share one sync of the disk.
 */
export interface Commits {
  /**
   * Runs `step` in the next transaction, and settles when the transaction is committed. If it is rolled back because of
   * another step, `step` runs again.
   */
  run<T>(step: () => T): Promise<T>;
  /** Runs `step` in its own transaction. If it throws, the transaction is rolled back, and the error is passed on. */
  runAlone<T>(step: () => T): Promise<T>;
  /** Resolves when no step waits. */
  idle(): Promise<void>;
}

export interface CommitOptions {
  /** The longest time in total that a step waits for locks of other connections, ms. */
  readonly busyMs: number;
  readonly delay: (ms: number) => Promise<void>;
  /** Returns a number that is at least 0 and below 1. It spreads the retries of several processes. */
  readonly random: () => number;
  readonly memory: Memory;
}

/** Data in memory, e.g. counts, that has to follow the transactions of the database. */
interface Memory {
  /** Called when a transaction has begun. */
  readonly begin: () => void;
  /** Called before each COMMIT, to write the data. */
  readonly save: () => void;
  /** Called after a rollback, to drop the data. */
  readonly forget: () => void;
}

/** The first and the longest wait for another connection's lock, ms. */
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 64;

/**
 * Makes the group commit of a connection.
 *
 * @param begin begins a transaction. If it fails for another reason than a lock, all waiting steps are rejected.
 */
export function commitsOf(db: SqliteHandle, begin: () => void, options: CommitOptions): Commits {
  const queue: CommitJob[] = [];
  let running: Promise<void> | undefined;

  const drain = async (): Promise<void> => {
    for (let refusals = 0; queue.length > 0;) {
      await turn();
      const error = commitNext(db, begin, queue, options.memory);
      refusals = error === undefined ? 0 : refusals + 1;
      if (error !== undefined) await waitForLock(queue, error, refusals, options);
    }
    running = undefined;
  };

  const enqueue = <T>(step: () => T, alone: boolean): Promise<T> => {
    const done = new Promise<T>((resolve, reject) => {
      queue.push({
        alone,
        step,
        resolve: resolve as (value: unknown) => void,
        reject,
        waitedMs: 0,
        isLast: false,
      });
    });
    running ??= drain();
    return done;
  };

  return {
    run: (step) => enqueue(step, false),
    runAlone: (step) => enqueue(step, true),
    idle: () => running ?? Promise.resolve(),
  };
}

/** Waits for the end of the current turn of the event loop, so that all steps of this turn are in the queue. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * Waits until another connection may have released its lock. The driver's own wait would stop the event loop. Steps
 * that have waited for `busyMs` in total are rejected.
 */
async function waitForLock(
  queue: CommitJob[],
  error: unknown,
  refusals: number,
  options: CommitOptions,
): Promise<void> {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(refusals - 1, 10));
  const ms = longest * (0.5 + options.random() / 2);
  const waiting = queue.length;
  await options.delay(ms);
  const left: CommitJob[] = [];
  // The first `waiting` steps of the queue waited through the delay. Steps behind them came during the delay.
  for (const job of queue.splice(0, waiting)) {
    job.waitedMs += ms;
    if (job.waitedMs < options.busyMs) left.push(job);
    else job.reject(asFault(error));
  }
  queue.unshift(...left);
}

/**
 * Runs one transaction for the waiting steps. Returns the error if a lock prevented it: then all steps keep waiting.
 */
function commitNext(db: SqliteHandle, begin: () => void, queue: CommitJob[], memory: Memory): unknown {
  try {
    begin();
  } catch (error) {
    if (isBusy(error)) return error;
    for (const job of queue.splice(0)) job.reject(asFault(error));
    return undefined;
  }
  memory.begin();
  const first = queue[0];
  if (first?.alone) {
    queue.shift();
    commitAlone(db, first, memory);
    return undefined;
  }
  const batch = queue.splice(0, sharing(queue));
  const failure = commitBatch(db, batch, memory);
  if (failure === undefined) return undefined;
  rollBack(db, memory);
  return undone(queue, batch, failure);
}

/** The error for which a transaction was rolled back, and the step that failed; no step if COMMIT failed. */
interface Failure {
  readonly error: unknown;
  readonly job?: CommitJob;
}

/**
 * Puts the steps of a rolled-back transaction back into the queue, so that they run again. The step that failed is
 * rejected instead. If COMMIT failed, all steps are rejected, unless another connection's lock was the reason.
 *
 * A step changes nothing but rows, so it can run again. A savepoint around each step would have the same effect, but
 * would cost time even if no step fails. The steps before the failed one get a transaction of their own. So they run
 * only once more, even if many later steps fail, e.g. on a full disk. Under a rollback journal COMMIT waits for
 * readers. If COMMIT fails because of a reader, all steps run again.
 *
 * @returns the error if a lock prevented COMMIT; otherwise undefined.
 */
function undone(queue: CommitJob[], batch: readonly CommitJob[], { error, job }: Failure): unknown {
  const busy = job === undefined && isBusy(error);
  const before = job && batch[batch.indexOf(job) - 1];
  if (before) before.isLast = true;
  const failed = busy ? [] : job ? [job] : batch;
  for (const one of failed) one.reject(asFault(error));
  queue.unshift(...batch.filter((one) => !failed.includes(one)));
  return busy ? error : undefined;
}

/**
 * Runs steps and commits them. No caller gets a result before the COMMIT, which makes all results durable. Returns the
 * failure, if there is one.
 */
function commitBatch(db: SqliteHandle, batch: readonly CommitJob[], memory: Memory): Failure | undefined {
  const values: unknown[] = [];
  for (const job of batch) {
    try {
      values.push(job.step());
    } catch (error) {
      return { error, job };
    }
  }
  try {
    memory.save();
    db.exec('COMMIT');
  } catch (error) {
    return { error };
  }
  for (const [at, job] of batch.entries()) job.resolve(values[at]);
  return undefined;
}

function commitAlone(db: SqliteHandle, job: CommitJob, memory: Memory): void {
  try {
    const value = job.step();
    commit(db, memory);
    job.resolve(value);
  } catch (error) {
    rollBack(db, memory);
    job.reject(error);
  }
}

/**
 * Commits. If a deferred constraint of the user's tables fails here, the error is passed to the user unchanged. Every
 * other error becomes a fault of the store.
 */
function commit(db: SqliteHandle, memory: Memory): void {
  try {
    memory.save();
    db.exec('COMMIT');
  } catch (error) {
    throw isConstraint(error) ? error : asFault(error);
  }
}

/** Rolls back. If ROLLBACK fails, SQLite has already rolled back by itself. */
function rollBack(db: SqliteHandle, { forget }: Memory): void {
  forget();
  try {
    db.exec('ROLLBACK');
  } catch {
    return;
  }
}
