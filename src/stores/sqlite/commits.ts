// Group commit: steps that come in one turn of the event loop share a transaction of SQLite (admission.md §9.2).
// Called by `src/stores/sqlite.ts`; open.ts makes it for each connection.
import { asFault, isBusy, isConstraint, type SqliteHandle } from './handle.ts';

/** A step that waits for its transaction. */
interface CommitJob {
  readonly alone: boolean;
  readonly step: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  waitedMs: number;
  /** True if its transaction ends behind it. */
  isLast: boolean;
}

/** The most steps in one transaction: they bound how long the synchronous driver blocks the event loop. */
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

/** Group commit: steps that come in one turn of the event loop share one transaction, and so one sync of the disk. */
export interface Commits {
  /** Runs `step` in the next transaction, and settles when that is committed. A step that is undone runs again. */
  run<T>(step: () => T): Promise<T>;
  /** Runs `step` in a transaction of its own. Its error is passed on, rolled back. */
  runAlone<T>(step: () => T): Promise<T>;
  /** Resolves when nothing is waiting. */
  idle(): Promise<void>;
}

export interface CommitOptions {
  /** The total of the waits for other connections, ms. */
  readonly busyMs: number;
  readonly delay: (ms: number) => Promise<void>;
  /** Returns a number of at least 0 and below 1, which spreads the retries of several processes. */
  readonly random: () => number;
  readonly memory: Memory;
}

/** The memory beside the database, which follows its transactions. */
interface Memory {
  /** Called when a transaction has begun. */
  readonly begin: () => void;
  /** Called before its COMMIT, to write. */
  readonly save: () => void;
  /** Called after a rollback. */
  readonly forget: () => void;
}

/** The first and the longest wait for another connection's lock, ms. */
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 64;

/** Makes the group commit of a connection. @param begin begins a transaction; its error fails all that wait. */
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

/** Waits for the end of the current turn: a step that comes alone does not wait for others. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * Waits for a lock. The driver itself would wait by stopping the event loop. Callers that have waited long enough are
 * rejected.
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
  // Steps that came meanwhile stand behind these, and have not waited yet.
  for (const job of queue.splice(0, waiting)) {
    job.waitedMs += ms;
    if (job.waitedMs < options.busyMs) left.push(job);
    else job.reject(asFault(error));
  }
  queue.unshift(...left);
}

/** Runs one transaction for the waiting steps. Returns the error if a lock was in the way: then all go on waiting. */
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

/** The reason for which a transaction was undone, with the step that failed, if one did. */
interface Failure {
  readonly error: unknown;
  readonly job?: CommitJob;
}

/**
 * Puts undone steps back; the failed one is rejected, and the others run again without it.
 *
 * Steps leave nothing but rows, so running them again is as good as a savepoint around each, and costs only when one
 * fails. The steps before the failed one go first, by themselves. So they run once more, and not once for each failure
 * behind them (a full disk fails step after step). COMMIT waits for readers under a rollback journal: then, too, the
 * steps can run again.
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

/** Runs steps, and answers none before the COMMIT that makes all their answers durable. */
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
 * Commits. A deferred constraint of the user's tables fails here, and its error is the user's; every other error is the
 * store's.
 */
function commit(db: SqliteHandle, memory: Memory): void {
  try {
    memory.save();
    db.exec('COMMIT');
  } catch (error) {
    throw isConstraint(error) ? error : asFault(error);
  }
}

/** Rolls back. It fails if SQLite has rolled back by itself; then it is done. */
function rollBack(db: SqliteHandle, { forget }: Memory): void {
  forget();
  try {
    db.exec('ROLLBACK');
  } catch {
    return;
  }
}
