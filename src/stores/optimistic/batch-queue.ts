// Collects the calls of one turn of the event loop into batches, and limits how many run at once (admission.md
// §8.12).
// Called by optimistic-store.ts, which runs each batch with batch-commit.ts.
import { Fault } from '../../shared/errors.ts';
import type { Scope } from '../backend.ts';
import type { QueuedPlan } from './batch-commit.ts';

/** A job that waits for its batch. */
export interface Queued extends QueuedPlan {
  readonly sender: string;
  /** The bytes of the event's body, and an estimate of the other rows that the job writes. */
  readonly bytes: number;
  /** The scopes to which the job adds rows. */
  readonly scopes?: readonly Scope[];
  readonly since: number;
}

export interface BatchOptions {
  /** Runs a batch. Never rejects. */
  readonly run: (requests: readonly Queued[]) => Promise<void>;
  /** The most batches that run at once; with `bySender`, the most for each sender. */
  readonly lanes: number;
  readonly bySender: boolean;
  /** Ms. */
  readonly timeoutMs: number;
}

/**
 * Batches of calls. Jobs that are added in one turn of the event loop, or while all lanes are busy, share a batch. A
 * batch is one round trip and one commit. A job that comes alone is sent alone. A lane runs one batch at a time.
 */
export interface Batches {
  readonly add: (request: Queued) => void;
  /** Resolves when no job waits and no batch runs. */
  readonly idle: () => Promise<void>;
}

/**
 * The most jobs and bytes of one batch. They bound how long a batch holds its locks, and how long one job waits for
 * the others in it.
 */
const MOST_JOBS = 64;
const MOST_BYTES = 4 * 1_048_576;

/** The fewest jobs of a batch when waiting jobs are divided among lanes: fewer are not divided. */
const LEAST_SHARE = 16;

/** The most jobs that wait. Without a bound a slow server would fill this process's memory. */
const MOST_WAITING = 10_000;

interface Scheduler {
  readonly setImmediate?: (run: () => void) => unknown;
}

interface Queue {
  readonly jobs: Queued[];
  busy: number;
  /** True if a running batch consists of one job that is too large to share a batch. */
  hasLarge: boolean;
}

const isLarge = ({ bytes }: Queued): boolean => bytes > MOST_BYTES;

export function createBatches(options: BatchOptions): Batches {
  const queues = new Map<string, Queue>();
  const idlers: (() => void)[] = [];
  let running = 0;
  let waiting = 0;
  let isScheduled = false;
  // Read when `createBatches` is called, because not every runtime has it. A fake clock that a caller installs later
  // must not delay accepts.
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
  // Starts in the next turn of the event loop. By then, callers that were just answered have made their next call.
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

/** Divides the waiting jobs among the free lanes, so that one batch is prepared while another runs. */
function shareOf(waiting: number, free: number): number {
  if (free === Infinity) return MOST_JOBS;
  return Math.min(MOST_JOBS, Math.max(LEAST_SHARE, Math.ceil(waiting / free)));
}

/**
 * Takes the next batch in the order of arrival, but no large job while another large one runs. Jobs that waited
 * longer than `timeoutMs` are rejected.
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
