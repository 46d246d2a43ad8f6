// Collects the store calls of one turn of the event loop into batches, and limits how many batches run at the same time
// (admission.md §8.12).
// Called by optimistic-store.ts, which runs each batch with batch-commit.ts.
import { Fault } from '../../shared/errors.ts';
import type { Scope } from '../backend.ts';
import type { QueuedPlan } from './batch-commit.ts';

/** A call of the store that waits for its batch. */
export interface Queued extends QueuedPlan {
  readonly sender: string;
  /** The bytes of the event's body, plus an estimate of the other rows that the call writes. */
  readonly bytes: number;
  /** The sets of rows to which the call may add: those of its sender, and the nonces of its key id. */
  readonly scopes?: readonly Scope[];
  readonly since: number;
}

export interface BatchOptions {
  /** Runs a batch. Never rejects. */
  readonly run: (requests: readonly Queued[]) => Promise<void>;
  /** The largest number of batches that run at the same time; with `bySender`, of each sender. */
  readonly lanes: number;
  readonly bySender: boolean;
  /** The longest time that a call waits for its batch to begin. Ms. */
  readonly timeoutMs: number;
}

/**
 * Groups calls into batches; a batch is one round trip and one commit. At most `lanes` batches run at the same time.
 * Calls that are added in one turn of the event loop, or while all lanes are busy, share a batch. A call that comes
 * alone is sent alone.
 */
export interface Batches {
  readonly add: (request: Queued) => void;
  /** Resolves when no call waits and no batch runs. */
  readonly idle: () => Promise<void>;
}

/**
 * The largest numbers of calls and of bytes in one batch. These limits bound how long a batch holds its locks, and how
 * long one call waits for the other calls of its batch.
 */
const MOST_JOBS = 64;
const MOST_BYTES = 4 * 1_048_576;

/** Up to this number, waiting calls share one batch, and are not divided among the free lanes. */
const LEAST_SHARE = 16;

/** The largest number of calls that may wait. Without a bound a slow server would fill this process's memory. */
const MOST_WAITING = 10_000;

interface Scheduler {
  readonly setImmediate?: (run: () => void) => unknown;
}

interface Queue {
  readonly jobs: Queued[];
  busy: number;
  /** True while a call runs that is too large to share a batch with others. */
  hasLarge: boolean;
}

const isLarge = ({ bytes }: Queued): boolean => bytes > MOST_BYTES;

export function createBatches(options: BatchOptions): Batches {
  const queues = new Map<string, Queue>();
  const idlers: (() => void)[] = [];
  let running = 0;
  let waiting = 0;
  let isScheduled = false;
  // `setImmediate` is read when a store is created, so that a fake clock which a caller installs later does not delay
  // calls of `accept`. Not every runtime has it.
  const { setImmediate: atEndOfTurn = (run: () => void) => setTimeout(run) } = globalThis as Scheduler;

  const serve = async (queue: Queue, batch: readonly Queued[]): Promise<void> => {
    const large = batch.some(isLarge);
    queue.hasLarge ||= large;
    await options.run(batch);
    if (large) queue.hasLarge = false;
    queue.busy -= 1;
    running -= 1;
    schedule();
  };
  // Starts batches in the next turn of the event loop. By then, callers that were just answered have made their next
  // call, which can share a batch.
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    atEndOfTurn(start);
  };
  const start = (): void => {
    isScheduled = false;
    for (const [name, queue] of queues) {
      while (queue.busy < options.lanes && queue.jobs.length > 0) {
        const free = options.lanes - queue.busy;
        const batch = take(queue, shareOf(queue.jobs.length, free), options.timeoutMs);
        waiting -= batch.taken;
        if (batch.taken === 0) break;
        if (batch.jobs.length === 0) continue;
        queue.busy += 1;
        running += 1;
        void serve(queue, batch.jobs);
      }
      if (queue.busy === 0 && queue.jobs.length === 0) queues.delete(name);
    }
    if (running === 0 && waiting === 0) for (const resolve of idlers.splice(0)) resolve();
  };

  return {
    add: (request) => {
      if (waiting >= MOST_WAITING) {
        request.reject(new Fault('store_unavailable', 'Too many calls are waiting for the store.'));
        return;
      }
      const name = options.bySender ? request.sender : '';
      let queue = queues.get(name);
      if (!queue) queues.set(name, (queue = { jobs: [], busy: 0, hasLarge: false }));
      queue.jobs.push(request);
      waiting += 1;
      schedule();
    },
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        schedule();
      }),
  };
}

/**
 * Returns the number of calls that the next batch may take. Waiting calls are divided among the free lanes, so that one
 * batch is prepared while another runs.
 */
function shareOf(waiting: number, free: number): number {
  if (free === Infinity) return MOST_JOBS;
  return Math.min(MOST_JOBS, Math.max(LEAST_SHARE, Math.ceil(waiting / free)));
}

/**
 * Takes the next batch from the queue, in the order of arrival. While a call runs that is too large to share a batch,
 * other such calls are skipped. Calls that waited longer than `timeoutMs` are rejected.
 */
function take(
  { jobs, hasLarge }: Queue,
  most: number,
  timeoutMs: number,
): { jobs: readonly Queued[]; taken: number } {
  const requests: Queued[] = [];
  const now = performance.now();
  let bytes = 0;
  let taken = 0;
  let place = 0;
  for (let next = jobs[place]; next && requests.length < most; next = jobs[place]) {
    if (hasLarge && isLarge(next)) {
      place += 1;
      continue;
    }
    bytes += next.bytes;
    if (requests.length > 0 && bytes > MOST_BYTES) break;
    jobs.splice(place, 1);
    taken += 1;
    if (now - next.since <= timeoutMs) requests.push(next);
    else
      next.reject(new Fault('store_unavailable', `The store did not begin the call within ${timeoutMs} ms.`));
  }
  return { jobs: requests, taken };
}
