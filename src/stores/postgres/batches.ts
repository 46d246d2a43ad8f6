import { Fault } from '../../errors.ts';
import type { Answer, Call } from './call.ts';
import { asFault, isRetryable, mayBeOneCalls } from './faults.ts';
import { sorter } from './fresh.ts';
import type { Batch } from './server.ts';

/**
 * Calls that arrive in one turn of the event loop, or while all lanes are busy, share one transaction: one round trip
 * and one commit. A lone one waits for nobody.
 */
export interface Batches {
  run(call: Call): Promise<Answer>;
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>;
}

export interface BatchOptions {
  /** One transaction: an answer for each call, in their order; undefined for one that has to come again, row by row. */
  readonly send: (batch: Batch) => Promise<readonly (Answer | undefined)[]>;
  /** Batches under way at once. */
  readonly lanes: number;
  /** A call that waited so long for its turn is given up. Ms. */
  readonly timeoutMs: number;
  /** 0 ≤ n < 1: spreads the retries of several processes. */
  readonly random: () => number;
}

interface Job {
  readonly call: Call;
  /** As `Batch` has it. */
  readonly lock: string;
  readonly since: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls and bytes of bodies in one transaction: they bound how long its locks are held. */
const MOST_CALLS = 64;
const MOST_BYTES = 4 * 1_048_576;

/** Fewer than this are not divided. */
const LEAST_SHARE = 16;

/** Tries of a transaction that the server rolls back because of others, and the first pause between them. */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

export function batchesOf(options: BatchOptions): Batches {
  const queue: Job[] = [];
  const idlers: (() => void)[] = [];
  let busy = 0;
  let scheduled = false;

  const serve = async (batch: readonly Job[]): Promise<void> => {
    const again = await settle(batch, options);
    // Row by row, before what came later.
    queue.unshift(...again);
    busy -= 1;
    schedule();
  };
  // In the next turn of the event loop: whoever was answered just now has made his next call by then.
  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(start);
  };
  const start = (): void => {
    scheduled = false;
    while (busy < options.lanes && queue.length > 0) {
      busy += 1;
      const most = shareOf(queue.length, options.lanes - busy + 1);
      void serve(take(queue, most, options.timeoutMs));
    }
    if (busy === 0 && queue.length === 0) for (const resolve of idlers.splice(0)) resolve();
  };

  return {
    run: (call) =>
      new Promise((resolve, reject) => {
        queue.push({ call, lock: lockKey(call), since: performance.now(), resolve, reject });
        schedule();
      }),
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        if (!scheduled) start();
      }),
  };
}

/** Many that wait are divided among the lanes that are free: one transaction is prepared while another is at work. */
function shareOf(waiting: number, free: number): number {
  return Math.min(MOST_CALLS, Math.max(LEAST_SHARE, Math.ceil(waiting / free)));
}

/** The next batch, first come first served; who waited too long is told so instead. */
function take(queue: Job[], most: number, timeoutMs: number): readonly Job[] {
  const batch: Job[] = [];
  const now = performance.now();
  let bytes = 0;
  for (let next = queue[0]; next && batch.length < most; next = queue[0]) {
    bytes += next.call.body?.length ?? 0;
    if (batch.length > 0 && bytes > MOST_BYTES) break;
    queue.shift();
    if (now - next.since <= timeoutMs) batch.push(next);
    else next.reject(new Fault('store_unavailable', `Postgres: no turn within ${timeoutMs} ms.`));
  }
  return batch;
}

/** As `webhook_run` wants them; sorting keeps the order of calls of one sender and key id. */
function byLock({ lock: one }: Job, { lock: other }: Job): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function lockKey({ json: { sender, keyid } }: Call): string {
  return JSON.stringify([sender, keyid ?? '']);
}

const callOf = ({ call }: Job): Call => call;

/** Answers every job of the batch but those that come again, which it returns. Never rejects. */
async function settle(batch: readonly Job[], options: BatchOptions): Promise<readonly Job[]> {
  if (batch.length === 0) return [];
  const { takes } = sorter();
  const jobs: Record<keyof Batch, Job[]> = { fresh: [], ends: [], others: [] };
  for (const job of batch) jobs[takes(job.call) ? (job.call.ends ? 'ends' : 'fresh') : 'others'].push(job);
  const { fresh, ends } = jobs;
  const others = jobs.others.toSorted(byLock);
  const calls = { fresh: fresh.map(callOf), ends: ends.map(callOf), others: others.map(callOf) };
  try {
    const answers = await retried(() => options.send(calls), options.random);
    return answered([...fresh, ...ends, ...others], answers);
  } catch (error) {
    if (batch.length > 1 && mayBeOneCalls(error)) {
      // All of it was rolled back. What one sender sent must not fail the others: halves find whose it was.
      const middle = Math.ceil(batch.length / 2);
      const again = await settle(batch.slice(0, middle), options);
      return [...again, ...(await settle(batch.slice(middle), options))];
    }
    for (const job of batch) job.reject(asFault(error));
    return [];
  }
}

/** @returns the jobs that come again, row by row. */
function answered(jobs: readonly Job[], answers: readonly (Answer | undefined)[]): readonly Job[] {
  const again: Job[] = [];
  for (const [index, job] of jobs.entries()) {
    const answer = answers[index];
    if (answer) job.resolve(answer);
    else if (job.call.fresh !== undefined || job.call.ends)
      again.push({ ...job, call: { ...job.call, fresh: undefined, ends: false } });
    else job.reject(new Fault('store_unavailable', 'Postgres: an answer is missing.'));
  }
  return again;
}

/** What was rolled back because of others (`isRetryable`) is tried again, the same transaction. */
export async function retried<T>(attempt: () => Promise<T>, random: () => number): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || tries >= MOST_TRIES) throw error;
      const ms = FIRST_PAUSE_MS * 2 ** tries * random();
      await new Promise((resolve) => {
        setTimeout(resolve, ms);
      });
    }
  }
}
