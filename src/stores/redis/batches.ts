import { Fault } from '../../errors.ts';
import { mayBeOneCalls } from './faults.ts';

/**
 * Requests of one sender that arrive in one turn of the event loop share one script. A lone one waits for nobody, and
 * nothing waits for an answer to another: Redis works on one script while the next one is packed.
 */
export interface Batches<T> {
  /** What the script answers to this one. @throws what `send` throws. */
  readonly run: (sender: string, item: T) => Promise<unknown>;
}

export interface BatchOptions<T> {
  /** One script: an answer for each, in their order. */
  readonly send: (sender: string, items: readonly T[]) => Promise<unknown>;
  readonly bytesOf: (item: T) => number;
}

interface Job<T> {
  readonly item: T;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Batch<T> {
  readonly jobs: Job<T>[];
  bytes: number;
}

interface Turns {
  readonly setImmediate?: (run: () => void) => unknown;
}

/** Requests and bytes in one script: while it runs, Redis does nothing else. */
const MOST = 32;
const MOST_BYTES = 262_144;

export function batchesOf<T>(options: BatchOptions<T>): Batches<T> {
  const open = new Map<string, Batch<T>>();
  const close = (sender: string, batch: Batch<T>): void => {
    open.delete(sender);
    void settle(sender, batch.jobs, options);
  };
  // Not every runtime has setImmediate; and a caller's fake clock, put in later, must not hold accepts up.
  const { setImmediate: atEndOfTurn = (run: () => void) => setTimeout(run) } = globalThis as Turns;
  let scheduled = false;
  const closeAll = (): void => {
    scheduled = false;
    for (const [sender, batch] of open) close(sender, batch);
  };
  const add = (sender: string, job: Job<T>): void => {
    const bytes = options.bytesOf(job.item);
    let batch = open.get(sender);
    if (batch && batch.bytes + bytes > MOST_BYTES) {
      close(sender, batch);
      batch = undefined;
    }
    if (!batch) {
      if (!scheduled) atEndOfTurn(closeAll);
      scheduled = true;
      batch = { jobs: [], bytes: 0 };
      open.set(sender, batch);
    }
    batch.jobs.push(job);
    batch.bytes += bytes;
    if (batch.jobs.length === MOST) close(sender, batch);
  };
  return {
    run: (sender, item) =>
      new Promise((resolve, reject) => {
        add(sender, { item, resolve, reject });
      }),
  };
}

/** Never rejects. */
async function settle<T>(sender: string, jobs: readonly Job<T>[], options: BatchOptions<T>): Promise<void> {
  try {
    const answers = await options.send(
      sender,
      jobs.map(({ item }) => item),
    );
    for (const [index, { resolve, reject }] of jobs.entries()) {
      if (Array.isArray(answers) && index in answers) resolve(answers[index]);
      else reject(new Fault('store_unavailable', 'Redis: an answer is missing.'));
    }
  } catch (error) {
    // Whose it was shows when each has a script of its own; what was done already is not done twice.
    if (jobs.length > 1 && mayBeOneCalls(error))
      await Promise.all(jobs.map((job) => settle(sender, [job], options)));
    else for (const { reject } of jobs) reject(error);
  }
}
