import { asFault, isBusy, isConstraint, type SqliteHandle } from './handle.ts';

/** A step that waits for its transaction. */
interface CommitJob {
  readonly alone: boolean;
  readonly step: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  waitedMs: number;
  /** The transaction that it is in ends with it. */
  isLast: boolean;
}

/** Steps in one transaction: bounds how long the synchronous driver keeps the event loop. */
const MOST = 128;

/** How many of those that wait share the next transaction. */
function sharing(queue: readonly CommitJob[]): number {
  let count = 0;
  for (const { alone, isLast } of queue) {
    if (alone || count === MOST) break;
    count += 1;
    if (isLast) break;
  }
  return count;
}

/** Group commit: what arrives in one turn of the event loop shares one transaction, and so one sync of the disk. */
export interface Commits {
  /** Runs `step` in the next transaction; settles when that is committed. One that is undone runs again. */
  run<T>(step: () => T): Promise<T>;
  /** Runs `step` in a transaction that it shares with nobody. What it throws is thrown on, rolled back. */
  runAlone<T>(step: () => T): Promise<T>;
  /** Resolves when nothing is waiting. */
  idle(): Promise<void>;
}

export interface CommitOptions {
  /** Total of the waits for other connections, ms. */
  readonly busyMs: number;
  readonly delay: (ms: number) => Promise<void>;
  /** 0 ≤ n < 1: spreads the retries of several processes. */
  readonly random: () => number;
  readonly memory: Memory;
}

/** What is remembered of the database beside it. */
interface Memory {
  /** A transaction has begun. */
  readonly begin: () => void;
  /** Before its COMMIT: writes what it has to. */
  readonly save: () => void;
  /** After a rollback. */
  readonly forget: () => void;
}

/** First and longest wait for another connection's lock, ms. */
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 64;

/** @param begin a transaction; what it throws fails all that wait. */
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

/** The end of the current turn: a step that comes alone does not wait for others. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The driver would wait by stopping the event loop, so the waiting is done here, and a caller that has waited enough leaves. */
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
  // Those that came meanwhile stand behind them, and have not waited yet.
  for (const job of queue.splice(0, waiting)) {
    job.waitedMs += ms;
    if (job.waitedMs < options.busyMs) left.push(job);
    else job.reject(asFault(error));
  }
  queue.unshift(...left);
}

/** One transaction for what waits now. Returns the error where a lock was in the way: then all wait on. */
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

/** Why a transaction was undone; with the step that failed, where one did. */
interface Failure {
  readonly error: unknown;
  readonly job?: CommitJob;
}

/**
 * One step's failure is its own: the others run again, without it. Steps leave nothing but rows, so running again what
 * was rolled back is as good as a savepoint around each, and costs only when one fails. Those before it go first, by
 * themselves, so that they run once more and not once for each failure behind them (a full disk fails step after step).
 * COMMIT waits for readers under a rollback journal: then too the steps can run again.
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

/** Answers nobody before the COMMIT that makes all of their answers durable. */
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

/** A deferred constraint of the owner's tables fails here, and is the owner's; all else is ours. */
function commit(db: SqliteHandle, memory: Memory): void {
  try {
    memory.save();
    db.exec('COMMIT');
  } catch (error) {
    throw isConstraint(error) ? error : asFault(error);
  }
}

/** Fails where SQLite has rolled back by itself; then it is done. */
function rollBack(db: SqliteHandle, { forget }: Memory): void {
  forget();
  try {
    db.exec('ROLLBACK');
  } catch {
    return;
  }
}
