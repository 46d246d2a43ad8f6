// Types of `receiver.inbox` and of the option `worker`, as users of the package see them (docs/operations.md).
// Implemented by `operate.ts` and `worker.ts`; exported by the package's main entry.

import type { InboxPage, InboxRecord } from '../stores/store.ts';

/**
 * The option `worker` of `createReceiver`: how many handlers of stored events this process runs at a time, and how
 * often it looks for events. It applies to mode `inbox`; mode `inline` ignores it.
 *
 * If a process died while it ran an event, that event is run alone the next time. Running handlers finish first, and no
 * other event is started meanwhile.
 */
export interface WorkerOptions {
  /** The largest number of handlers that run at a time in this process. Default: 10. */
  readonly concurrency?: number;
  /**
   * The largest number of events that one call of the store leases. It is never more than the number of free handlers.
   * Default: `concurrency`.
   */
  readonly batch?: number;
  /**
   * The time after which an idle worker looks for events again, ms. An event that another process queued waits at most
   * this long. Default: 1 000.
   */
  readonly pollMs?: number;
}

/**
 * A stored event, as `receiver.inbox.list` and `inspect` return it to operators: its state, runs, last error and
 * times (Unix ms).
 */
export interface SeenEvent extends InboxRecord {
  /** The id by which `ctx.deliveryId`, alarms and log lines name the event. */
  readonly deliveryId: string;
  /**
   * The id of the operation to which the event belongs. Only `inspect` returns it, and only while the body is stored.
   */
  readonly operationId?: string;
}

/**
 * One page of stored events, returned by `receiver.inbox.list`. Pass `next` as `after` to get the next page; it is
 * absent on the last one.
 */
export interface SeenEvents extends InboxPage {
  readonly records: readonly SeenEvent[];
}

/**
 * Selects the stored events that `receiver.inbox.list` returns: one state, of one seller or of all, one page at a time.
 * `after` is the `next` of the previous page.
 */
export interface InboxListQuery {
  /**
   * The state of the events. `dead`: failed for good, and kept for you. `queued`: waiting for a worker, or for a
   * seller's retry. `leased`: running, or the process that ran it died.
   */
  readonly state: 'queued' | 'leased' | 'dead';
  /** The agent URL of the sender. Default: all senders. */
  readonly sender?: string;
  /** The largest number of events, 1 to 1 000. Default: 100. */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly after?: string;
}

/**
 * The result of `receiver.inbox.redrive`, which runs a DEAD event again.
 *
 * - `queued`: a worker will run it (mode `inbox`).
 * - `applied`: its handler ran here and returned (mode `inline`).
 * - `dead`: its handler ran here and failed; it is DEAD again, and `inspect` says why.
 * - `stale`: its task has a newer status, so the event is done without being handled.
 * - `busy`: its handler, or the handler of another event of its task, is running here or elsewhere: try again.
 * - `absent`: there is no such event.
 * - `other`: it needs no redrive: it is done, or already waits for a worker.
 */
export type RedriveResult = 'queued' | 'applied' | 'dead' | 'stale' | 'busy' | 'absent' | 'other';

/**
 * The result of `receiver.inbox.discard`, which ends an event without handling it. `discarded`: the event has ended.
 * `absent`: there is no such event. `other`: the event is running or done, so it was not changed.
 */
export type DiscardResult = 'discarded' | 'absent' | 'other';

/**
 * The number of one seller's stored events in one state, and the time of the oldest. `receiver.inbox.stats` returns
 * one for each seller and state.
 */
export interface SenderStats {
  /** The agent URL of the seller. */
  readonly sender: string;
  readonly state: InboxListQuery['state'];
  /** The number of the sender's events in this state. */
  readonly count: number;
  /** The time at which the oldest of these events was stored, Unix ms on the store's clock. */
  readonly oldestInsertedAt: number;
}

/**
 * The numbers of queued, leased (running) and DEAD events, in total and by seller, returned by `receiver.inbox.stats`.
 * If `isComplete` is false, only the oldest events were counted.
 */
export interface InboxStats {
  readonly queued: number;
  readonly leased: number;
  readonly dead: number;
  /** The sellers that have unfinished events, with one entry for each state. */
  readonly senders: readonly SenderStats[];
  /**
   * False if the store cannot count, and a state has at least `most` events (the argument of `stats`). Then only the
   * oldest events are counted.
   */
  readonly isComplete: boolean;
}

/** Selects the DEAD events that `receiver.inbox.redriveMany` runs again: those that match all members. */
export interface RedriveManyQuery {
  /** If true, counts the events and changes nothing. */
  readonly dryRun: boolean;
  /** The agent URL of the sender. Default: all senders. */
  readonly sender?: string;
  /** Selects events that were stored before this time, Unix ms on the store's clock. Default: any time. */
  readonly before?: number;
  /** A text that the event's `lastError` contains, in the same letter case. Default: any error. */
  readonly error?: string;
}

/**
 * Selects the DEAD or queued events that `receiver.inbox.discardMany` ends without handling them: those that match
 * all members.
 */
export interface DiscardManyQuery extends RedriveManyQuery {
  /** The state of the events. Default: `dead`. */
  readonly state?: 'dead' | 'queued';
}

/**
 * The result of `receiver.inbox.redriveMany` or `discardMany`: the number of events that matched, and the number of
 * events with each result.
 */
export interface ManyResult<R extends string> {
  /** The number of events that matched. */
  readonly matched: number;
  /** The number of matching events of each sender, by agent URL. */
  readonly senders: Readonly<Record<string, number>>;
  /** The number of events with each result; empty after a `dryRun`. */
  readonly results: Readonly<Partial<Record<R, number>>>;
}

/**
 * Lists, inspects, runs again or discards stored events that failed for good (DEAD) or are stuck, in both modes:
 * `receiver.inbox`. Every method rejects with `ConfigError` if the store has no inbox or an argument is wrong. It
 * rejects with an error of code `store_unavailable` if the store is unreachable.
 */
export interface ReceiverInbox {
  /** Lists events, oldest first, in pages, without bodies. */
  readonly list: (query: InboxListQuery) => Promise<SeenEvents>;
  /** Returns one event with its body and its last error; undefined if there is no such event. */
  readonly inspect: (sender: string, idempotencyKey: string) => Promise<SeenEvent | undefined>;
  /**
   * Runs a DEAD event again, with the full number of attempts. In mode `inbox`, the event goes back to the workers. In
   * mode `inline`, its handler runs in this process before the promise settles.
   *
   * In mode `inline`, a stuck event is run too: `queued`, or `leased` by a process that died.
   */
  readonly redrive: (sender: string, idempotencyKey: string) => Promise<RedriveResult>;
  /**
   * Ends a DEAD or queued event without handling it. Later deliveries of the event are answered 200. `other`: the event
   * is running or done.
   */
  readonly discard: (sender: string, idempotencyKey: string) => Promise<DiscardResult>;
  /**
   * Counts events by sender and state. If the store cannot count, its events are read in pages of 1 000.
   * @param query `most`: the number of events of one state after which reading pages ends. Default: 100 000.
   */
  readonly stats: (query?: { readonly most?: number }) => Promise<InboxStats>;
  /**
   * Runs every matching DEAD event again, the oldest first, each at most once per call. Mode `inbox` redrives four
   * events at a time. Mode `inline` runs one event after the other. It also runs stuck events, e.g. those that the
   * command line has queued and no worker runs.
   *
   * If the call rejects or the process ends, the next call continues with the remaining events.
   */
  readonly redriveMany: (query: RedriveManyQuery) => Promise<ManyResult<RedriveResult>>;
  /**
   * Ends every matching event without handling it, in the same way as `redriveMany`: the oldest first, four at a time.
   * Result `other`: the event has left the state meanwhile.
   */
  readonly discardMany: (query: DiscardManyQuery) => Promise<ManyResult<DiscardResult>>;
}
