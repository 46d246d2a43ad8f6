import type { InboxPage, InboxRecord } from '../stores/store.ts';

/**
 * Options of a process that works on the inbox, for mode `inbox`; mode `inline` ignores them.
 *
 * An event whose lease ended with its process runs alone: running handlers finish first, and nothing else is leased
 * meanwhile.
 */
export interface WorkerOptions {
  /** The largest number of handlers at a time in this process. Default: 10. */
  readonly concurrency?: number;
  /**
   * The largest number of events leased in one call of the store, never more than free handlers. Default:
   * `concurrency`.
   */
  readonly batch?: number;
  /**
   * The time after which an idle worker looks again, ms. An event that another process queued waits at most this
   * long. Default: 1 000.
   */
  readonly pollMs?: number;
}

/** An event as `receiver.inbox` shows it. */
export interface SeenEvent extends InboxRecord {
  /** The id that `ctx.deliveryId`, alarms and log lines have. */
  readonly deliveryId: string;
  /** The operation id. Only `inspect` returns it, while the body is kept. */
  readonly operationId?: string;
}

/** A page of events. */
export interface SeenEvents extends InboxPage {
  readonly records: readonly SeenEvent[];
}

/** Selects the events that `receiver.inbox.list` returns. */
export interface InboxListQuery {
  /**
   * The state. `dead`: kept for you. `queued`: waiting for a worker, or for a seller's retry. `leased`: running, or
   * its process died.
   */
  readonly state: 'queued' | 'leased' | 'dead';
  /** The agent URL of the sender. Default: all senders. */
  readonly sender?: string;
  /** The largest number of events, 1 to 1 000. Default: 100. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/**
 * The result of redriving an event.
 *
 * - `queued`: a worker will run it (mode `inbox`).
 * - `applied`: its handler ran here and returned (mode `inline`).
 * - `dead`: its handler ran here and failed; it is DEAD again, and `inspect` says why.
 * - `stale`: its task has a newer status; it is done without being handled.
 * - `busy`: its handler runs, here or elsewhere, or that of another event of its task: try again.
 * - `absent`: there is no such event.
 * - `other`: it needs no redrive: it is done, or already waits for a worker.
 */
export type RedriveResult = 'queued' | 'applied' | 'dead' | 'stale' | 'busy' | 'absent' | 'other';

/** The result of discarding an event. `other`: it runs, or is done. */
export type DiscardResult = 'discarded' | 'absent' | 'other';

/** The events of one sender in one state. */
export interface SenderStats {
  /** The agent URL of the sender. */
  readonly sender: string;
  readonly state: InboxListQuery['state'];
  readonly count: number;
  /** The time at which the oldest was stored, Unix ms on the store's clock. */
  readonly oldestInsertedAt: number;
}

/** The number of unfinished events. */
export interface InboxStats {
  readonly queued: number;
  readonly leased: number;
  readonly dead: number;
  /** The senders that have unfinished events, one row per state. */
  readonly senders: readonly SenderStats[];
  /** False if a state has `most` events or more; then only the oldest are counted. */
  readonly isComplete: boolean;
}

/** Selects the DEAD events that `receiver.inbox.redriveMany` runs: those that match all members. */
export interface RedriveManyQuery {
  /** If true, counts the events and changes nothing. */
  readonly dryRun: boolean;
  /** The agent URL of the sender. Default: all senders. */
  readonly sender?: string;
  /** The time before which the events were stored, Unix ms on the store's clock. */
  readonly before?: number;
  /** A text that `lastError` contains, as it is written there. */
  readonly error?: string;
}

/** Selects the events that `receiver.inbox.discardMany` discards. */
export interface DiscardManyQuery extends RedriveManyQuery {
  /** The state of the events. Default: `dead`. */
  readonly state?: 'dead' | 'queued';
}

/** The result of `redriveMany` or `discardMany`. */
export interface ManyResult<R extends string> {
  /** The number of events that matched. */
  readonly matched: number;
  /** The number of matching events by agent URL. */
  readonly senders: Readonly<Record<string, number>>;
  /** The number of events by result; empty after a `dryRun`. */
  readonly results: Readonly<Partial<Record<R, number>>>;
}

/**
 * Manages events that are DEAD or stuck, in both modes. Every method rejects with `ConfigError` if the store has no
 * inbox or an argument is wrong. It rejects with an error of code `store_unavailable` if the store is unreachable.
 */
export interface ReceiverInbox {
  /** Lists events, oldest first, in pages, without bodies. */
  readonly list: (query: InboxListQuery) => Promise<SeenEvents>;
  /** Returns one event with its body and its last error; undefined if there is none. */
  readonly inspect: (sender: string, idempotencyKey: string) => Promise<SeenEvent | undefined>;
  /**
   * Runs a DEAD event again, with all its attempts. In mode `inbox` it goes back to the workers. In mode `inline`
   * its handler runs in this process before the promise settles.
   *
   * In mode `inline` a stuck event is run too: `queued`, or `leased` by a process that died.
   */
  readonly redrive: (sender: string, idempotencyKey: string) => Promise<RedriveResult>;
  /** Ends a DEAD or queued event without handling it. Its duplicates are answered 200. `other`: it runs, or is done. */
  readonly discard: (sender: string, idempotencyKey: string) => Promise<DiscardResult>;
  /**
   * Counts events by sender and state. It reads pages of 1 000 records, each with one call of the store.
   * @param query most: events of a state that are counted; 100 000.
   */
  readonly stats: (query?: { readonly most?: number }) => Promise<InboxStats>;
  /**
   * Runs every matching DEAD event again, the oldest first, each at most once per call. Mode `inbox` redrives four
   * at a time. Mode `inline` runs one after the other, and also those that the command line has queued and no
   * worker runs.
   *
   * If it rejects or the process ends, the next call continues with the remaining events.
   */
  readonly redriveMany: (query: RedriveManyQuery) => Promise<ManyResult<RedriveResult>>;
  /** Discards every matching event, as `redriveMany` redrives. `other`: the event left the state meanwhile. */
  readonly discardMany: (query: DiscardManyQuery) => Promise<ManyResult<DiscardResult>>;
}
