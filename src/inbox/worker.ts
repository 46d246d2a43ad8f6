import { Fault, isOfKind } from '../errors.ts';
import type { Equipped } from '../parts.ts';
import { raiseDead } from '../stages/announce.ts';
import type { LeasedEvent, StoreInbox } from '../stores/contract.ts';
import type { Bell } from './bell.ts';
import { giveBack, runLeased } from './run.ts';

/** Leases what is due and runs it, in this process. */
export interface Worker {
  /** Begins; called again, nothing. */
  readonly start: () => void;
  /**
   * Leases nothing more, gives back what has not begun, and waits for the handlers that run, at most `graceMs`;
   * when three quarters of it are over, their signals fire. Ms.
   */
  readonly stop: (graceMs: number) => Promise<void>;
}

/** However soon something is due, an idle worker does not look more often than this. Ms. */
const SHORTEST_NAP_MS = 20;
/** A store that fails is asked again after `pollMs`, twice that, and so on up to this, with jitter. Ms. */
const LONGEST_NAP_MS = 30_000;

/** Handlers under way. */
interface Runs {
  readonly size: () => number;
  readonly begin: (event: LeasedEvent) => void;
  readonly abort: (reason: Fault) => void;
  readonly settled: () => Promise<unknown>;
}

function createRuns(parts: Equipped, bell: Bell): Runs {
  const running = new Map<AbortController, Promise<void>>();
  return {
    size: () => running.size,
    begin(event) {
      const abort = new AbortController();
      const run = runLeased(event, parts, abort).finally(() => {
        running.delete(abort);
        // A handler is free, and perhaps a task.
        bell.ring();
      });
      running.set(abort, run);
    },
    abort: (reason) => {
      for (const abort of running.keys()) abort.abort(reason);
    },
    settled: () => Promise.all(running.values()),
  };
}

/** One call of the store: leases for at most `max` handlers. Resolves with how long to wait for the next, ms. */
type Round = (max: number, take: (event: LeasedEvent) => unknown) => Promise<number>;

function createRound(parts: Equipped, inbox: StoreInbox): Round {
  const { leaseMs, retry, retentionMs, senders, worker } = parts.config;
  const agentUrls = (senders.fixed ?? []).map(({ agentUrl }) => agentUrl);
  let failures = 0;
  // Kept until a call is answered: what one gave that was not, and that nobody runs, is then known for the worker's own.
  let owner = parts.newId();

  async function lease(max: number, take: (event: LeasedEvent) => unknown): Promise<number> {
    const request = { owner, max, leaseMs, retry, retentionMs, senders: agentUrls };
    const { events, died, nextDueMs = worker.pollMs } = await inbox.lease(request);
    owner = parts.newId();
    for (const { sender, key } of died) raiseDead(sender, key, 'its runs are used up', parts.raiseAlarm);
    await Promise.all(events.map(take));
    if (events.length > 0 || died.length > 0) return 0;
    return Math.max(SHORTEST_NAP_MS, Math.min(nextDueMs, worker.pollMs));
  }

  /** The store may be away for a while; it is asked again until it answers. */
  function napAfter(error: unknown): number {
    failures += 1;
    parts.logger.error({ err: error, failures }, 'the inbox could not be read');
    if (isOfKind(error, Fault) && error.code === 'misconfigured') {
      parts.raiseAlarm({ code: 'misconfigured', message: error.message });
    }
    const longest = Math.min(LONGEST_NAP_MS, worker.pollMs * 2 ** Math.min(failures, 20));
    return longest * (0.5 + parts.random() / 2);
  }

  return async (max, take) => {
    try {
      const napMs = await lease(max, take);
      failures = 0;
      return napMs;
    } catch (error) {
      return napAfter(error);
    }
  };
}

/** Waits for `over`, at most `graceMs`; `warn` is called when three quarters of that have passed. */
async function waitFor(over: Promise<unknown>, graceMs: number, warn: () => void): Promise<void> {
  const warning = setTimeout(warn, graceMs * 0.75);
  let last: ReturnType<typeof setTimeout> | undefined;
  const grace = new Promise((resolve) => {
    last = setTimeout(resolve, graceMs);
  });
  await Promise.race([over, grace]);
  clearTimeout(warning);
  clearTimeout(last);
}

/** @param inbox the store's. */
export function createWorker(parts: Equipped, inbox: StoreInbox, bell: Bell): Worker {
  const { concurrency, batch, pollMs } = parts.config.worker;
  const runs = createRuns(parts, bell);
  const round = createRound(parts, inbox);
  let stopping = false;
  let working: Promise<void> | undefined;

  const take = (event: LeasedEvent): unknown => (stopping ? giveBack(event, parts) : runs.begin(event));

  async function work(): Promise<void> {
    for (;;) {
      if (stopping) return;
      const room = concurrency - runs.size();
      const napMs = room > 0 ? await round(Math.min(room, batch), take) : pollMs;
      if (napMs > 0 && !stopping) await bell.wait(napMs);
    }
  }

  return {
    start: () => {
      if (!stopping) working ??= work();
    },
    async stop(graceMs) {
      stopping = true;
      bell.ring();
      // A call of the store that is under way may bring events still; they are given back.
      const over = Promise.resolve(working).then(() => runs.settled());
      await waitFor(over, graceMs, () => runs.abort(new Fault('shutting_down', 'the worker stops')));
      const running = runs.size();
      if (running > 0) parts.logger.error({ running }, 'handlers still run: their leases run out');
    },
  };
}
