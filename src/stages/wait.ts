// Makes a delivery wait while another copy of its event, or another event of its task, is being handled
// (admission.md §3.11).
// Called by `admit`; `settle` calls `wake` to end a wait early.

import { requestsMayShare } from '../shared/single-flight.ts';
import { Fault } from '../shared/errors.ts';
import { settledWithin, sleep } from '../shared/time-limits.ts';
import type { PeekResult, Store } from '../stores/store.ts';

/**
 * Makes deliveries wait for the handler of another delivery, of the same event or task (admission.md §3.11). A process
 * has one poll per record, shared by all deliveries that wait for that record. If a handler settles in this process,
 * they are woken immediately.
 */
export interface Waiting {
  /**
   * Resolves when the event's record is finished or can be leased, or with `busy` at the deadline.
   * @throws Fault `overloaded` if too many deliveries are waiting already.
   */
  readonly until: (request: WaitRequest) => Promise<PeekResult>;
  /** Makes the waiting deliveries of this sender check again now, because a handler has settled in this process. */
  readonly wake: (sender: string) => void;
}

interface WaitRequest {
  readonly sender: string;
  readonly key: string;
  /** Time in ms that the caller still waits, measured by `setTimeout`. */
  readonly leftMs: number;
  readonly signal: AbortSignal | undefined;
  /**
   * True if this process runs the event's handler, or a handler of another event of its task. The delivery then waits
   * even if that handler's lease has expired.
   */
  readonly isRunning: () => boolean;
}

/**
 * The largest number of waiting deliveries of one process. Further ones are answered 503 without waiting. There is no
 * limit on runtimes where a request can die before its end, because the count would stay too high.
 */
const MAX_WAITING = 1_000;
const POLL_MS = 200;

interface Poll {
  readonly result: Promise<PeekResult>;
  waiters: number;
}

/** Pauses between the polls of a sender's records, which `wake` ends early. */
interface Sleeper {
  readonly sleep: (sender: string) => Promise<void>;
  readonly wake: (sender: string) => void;
}

function createSleeper(): Sleeper {
  const sleeping = new Map<string, Set<AbortController>>();
  return {
    async sleep(sender) {
      const woken = new AbortController();
      const all = sleeping.get(sender) ?? new Set();
      sleeping.set(sender, all.add(woken));
      await sleep(POLL_MS, woken.signal);
      all.delete(woken);
      if (all.size === 0) sleeping.delete(sender);
    },
    wake(sender) {
      for (const woken of sleeping.get(sender) ?? []) woken.abort();
    },
  };
}

/**
 * Returns the function that starts the poll of a record, or returns the poll that runs already. All deliveries that
 * wait for the record share it, if `shared` is true. A poll ends when no delivery waits for it.
 */
function createPolls(
  store: Pick<Store, 'peek'>,
  sleeper: Sleeper,
  shared: boolean,
): (request: WaitRequest) => Poll {
  const polls = new Map<string, Poll>();

  async function poll(
    { sender, key, isRunning }: WaitRequest,
    state: { waiters: number },
  ): Promise<PeekResult> {
    for (;;) {
      const seen = await store.peek(sender, key);
      const isTaken = seen === 'busy' || (seen === 'free' && isRunning());
      if (!isTaken || state.waiters === 0) return seen;
      await sleeper.sleep(sender);
    }
  }

  return (request) => {
    const { sender, key } = request;
    const id = JSON.stringify([sender, key]);
    const running = polls.get(id);
    if (running) return running;
    const state = { waiters: 0 };
    const result = poll(request, state).finally(() => polls.delete(id));
    // Each waiting delivery handles a rejection itself. This handler only keeps the shared promise from counting as
    // unhandled.
    result.catch(() => {});
    const started = Object.assign(state, { result });
    if (shared) polls.set(id, started);
    return started;
  };
}

/**
 * Creates the object by which a receiver's deliveries wait. On runtimes where deliveries cannot wait for each other's
 * promises (`requestsMayShare`), each delivery polls for itself.
 */
export function createWaiting(store: Pick<Store, 'peek'>): Waiting {
  const shared = requestsMayShare();
  const sleeper = createSleeper();
  const join = createPolls(store, sleeper, shared);
  let waiting = 0;

  async function until(request: WaitRequest): Promise<PeekResult> {
    if (shared && waiting >= MAX_WAITING) {
      throw new Fault(
        'overloaded',
        `${MAX_WAITING} deliveries already wait for handlers of other deliveries`,
      );
    }
    waiting += 1;
    const poll = join(request);
    poll.waiters += 1;
    try {
      return (await settledWithin(poll.result, request.leftMs, request.signal)) ?? 'busy';
    } finally {
      waiting -= 1;
      poll.waiters -= 1;
    }
  }

  return { until, wake: shared ? sleeper.wake : () => {} };
}
