import { Fault } from '../../errors.ts';
import type { SqliteHandle } from './handle.ts';
import { asFault, isBusy, isConstraint } from './handle.ts';

/** Group commit: what arrives in one turn of the event loop shares one transaction, and so one sync of the disk. */
export interface Commits {
  /** Runs `step` in the next transaction, in a savepoint of its own; settles when that is committed. */
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
  /** After a rollback. */
  readonly forget: () => void;
}

interface Job {
  readonly alone: boolean;
  readonly step: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  waitedMs: number;
}

/** Steps in one transaction: bounds how long the synchronous driver keeps the event loop. */
const MOST = 128;

/** First and longest wait for another connection's lock, ms. */
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 64;

/** @param prepare before each transaction; what it throws fails all that wait. */
export function commitsOf(db: SqliteHandle, prepare: () => void, options: CommitOptions): Commits {
  const queue: Job[] = [];
  let running: Promise<void> | undefined;

  const drain = async (): Promise<void> => {
    for (let refusals = 0; queue.length > 0;) {
      await turn();
      const error = commitNext(db, prepare, queue, options.forget);
      refusals = error === undefined ? 0 : refusals + 1;
      if (error !== undefined) await waitForLock(queue, error, refusals, options);
    }
    running = undefined;
  };

  const enqueue = <T>(step: () => T, alone: boolean): Promise<T> => {
    const done = new Promise<T>((resolve, reject) => {
      queue.push({ alone, step, resolve: resolve as (value: unknown) => void, reject, waitedMs: 0 });
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

/** The end of the current turn: a lone step waits for nobody else. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The driver would wait by stopping the event loop, so the waiting is done here, and whoever waited enough leaves. */
async function waitForLock(
  queue: Job[],
  error: unknown,
  refusals: number,
  options: CommitOptions,
): Promise<void> {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(refusals - 1, 10));
  const ms = longest * (0.5 + options.random() / 2);
  const waiting = queue.length;
  await options.delay(ms);
  const left: Job[] = [];
  // Whoever came meanwhile stands behind them, and has not waited yet.
  for (const job of queue.splice(0, waiting)) {
    job.waitedMs += ms;
    if (job.waitedMs < options.busyMs) left.push(job);
    else job.reject(asFault(error));
  }
  queue.unshift(...left);
}

/** One transaction for what waits now. Returns the error where a lock was in the way: then all wait on. */
function commitNext(db: SqliteHandle, prepare: () => void, queue: Job[], forget: () => void): unknown {
  try {
    prepare();
    db.exec('BEGIN IMMEDIATE');
  } catch (error) {
    if (isBusy(error)) return error;
    for (const job of queue.splice(0)) job.reject(asFault(error));
    return undefined;
  }
  const first = queue[0];
  if (first?.alone) {
    queue.shift();
    commitAlone(db, first, forget);
    return undefined;
  }
  const alone = queue.findIndex((job) => job.alone);
  const batch = queue.splice(0, Math.min(MOST, alone === -1 ? MOST : alone));
  const error = commitBatch(db, batch, forget);
  if (error === undefined) return undefined;
  rollBack(db, forget);
  // COMMIT waits for readers under a rollback journal; the steps were undone and can run again.
  if (isBusy(error)) queue.unshift(...batch);
  else for (const job of batch) job.reject(asFault(error));
  return isBusy(error) ? error : undefined;
}

/** Answers nobody before the COMMIT that makes all of their answers durable. */
function commitBatch(db: SqliteHandle, batch: readonly Job[], forget: () => void): unknown {
  try {
    const answers = batch.map((job) => inSavepoint(db, job, forget));
    db.exec('COMMIT');
    for (const answer of answers) answer();
    return undefined;
  } catch (error) {
    return error ?? new Fault('store_unavailable', 'SQLite: the transaction failed.');
  }
}

/** One step's failure is its own. Where SQLite has ended the whole transaction (full, I/O), ROLLBACK TO throws too. */
function inSavepoint(db: SqliteHandle, job: Job, forget: () => void): () => void {
  db.exec('SAVEPOINT webhook_step');
  try {
    const value = job.step();
    db.exec('RELEASE webhook_step');
    return () => job.resolve(value);
  } catch (error) {
    forget();
    try {
      db.exec('ROLLBACK TO webhook_step');
      db.exec('RELEASE webhook_step');
    } catch {
      throw error;
    }
    return () => job.reject(asFault(error));
  }
}

function commitAlone(db: SqliteHandle, job: Job, forget: () => void): void {
  try {
    const value = job.step();
    commit(db);
    job.resolve(value);
  } catch (error) {
    rollBack(db, forget);
    job.reject(error);
  }
}

/** A deferred constraint of the owner's tables fails here, and is the owner's; all else is ours. */
function commit(db: SqliteHandle): void {
  try {
    db.exec('COMMIT');
  } catch (error) {
    throw isConstraint(error) ? error : asFault(error);
  }
}

/** Fails where SQLite has rolled back by itself; then it is done. */
function rollBack(db: SqliteHandle, forget: () => void): void {
  forget();
  try {
    db.exec('ROLLBACK');
  } catch {
    return;
  }
}
