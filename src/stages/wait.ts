// Makes a delivery wait while another copy of its event, or another event of its task, is being handled
// (admission.md §3.11).
// Called by `admit`; the `wake` of `settle` ends a wait early.

import { requestsMayShare } from '../shared/single-flight.ts';
import { Fault } from '../shared/errors.ts';
import { settledWithin, sleep } from '../shared/time-limits.ts';
import type { PeekResult, Store } from '../stores/store.ts';

/**
 * Deliveries that wait for a handler of another delivery, of the same event or task (admission.md §3.11). A
 * process has one poll per record. A handler that settles in this process wakes them at once.
 */
export interface Waiting {
  /**
   * Resolves when the record is finished or can be leased, or with `busy` at the deadline.
   * @throws Fault `overloaded` if too many deliveries wait already.
   */
  readonly until: (request: WaitRequest) => Promise<PeekResult>;
  /** Makes the deliveries of this sender look again now, because a handler settled here. */
  readonly wake: (sender: string) => void;
}

interface WaitRequest {
  readonly sender: string;
  readonly key: string;
  /** Remaining time in ms, on the clock of `setTimeout`. */
  readonly leftMs: number;
  readonly signal: AbortSignal | undefined;
  /**
   * True if the event's handler, or one of its task, runs in this process: it is waited for even if its lease
   * is over.
   */
  readonly isRunning: () => boolean;
}

/**
 * Most waiting deliveries of one process; more are answered 503 at once. Not counted if a request can die
 * without reaching its end.
 */
const MAX_WAITING = 1_000;
const POLL_MS = 200;

interface Poll {
  readonly result: Promise<PeekResult>;
  waiters: number;
}

/** Short sleeps by sender, which can be ended early. */
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

/** One poll per record, shared by all that may wait for each other; it ends when nobody waits. */
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
    // A rejection reaches every waiter through its race; this copy must not count as unhandled.
    result.catch(() => {});
    const started = Object.assign(state, { result });
    if (shared) polls.set(id, started);
    return started;
  };
}

/** If deliveries may not wait for each other's promises (`requestsMayShare`), each polls for itself. */
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
