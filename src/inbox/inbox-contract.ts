import type { InboxPage, InboxRecord } from '../stores/store.ts';

/**
 * How a process works on the inbox. For mode `inbox`; nothing in mode `inline`. An event whose lease ended with its
 * process runs alone: what runs is let finish first, and nothing else is leased meanwhile (admission.md §4.6).
 */
export interface WorkerOptions {
  /** Handlers at a time in this process. 10. */
  readonly concurrency?: number;
  /** Events leased in one call of the store, never more than handlers are free. `concurrency`. */
  readonly batch?: number;
  /** Ms after which an idle worker looks again: what another process's door queued waits so long at most. 1 000. */
  readonly pollMs?: number;
}

/** An event as `receiver.inbox` shows it. */
export interface SeenEvent extends InboxRecord {
  /** As `ctx.deliveryId`, in alarms and in log lines. */
  readonly deliveryId: string;
  /** `inspect` only, while the body is kept. */
  readonly operationId?: string;
}

/** A page of them. */
export interface SeenEvents extends InboxPage {
  readonly records: readonly SeenEvent[];
}

/** Which events `receiver.inbox.list` gives. */
export interface InboxListQuery {
  /** `dead`: kept for you. `queued`: waiting for a worker, or a seller's retry. `leased`: running, or their process died. */
  readonly state: 'queued' | 'leased' | 'dead';
  /** Agent URL; all senders where absent. */
  readonly sender?: string;
  /** 1 to 1 000; 100. */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
}

/**
 * What became of a redriven event.
 * - `queued`: a worker will run it (mode `inbox`).
 * - `applied`: its handler ran here and returned (mode `inline`).
 * - `dead`: its handler ran here and failed; it is DEAD again, and `inspect` says why.
 * - `stale`: its task has a newer status by now; it is done without being handled.
 * - `busy`: its handler runs, here or elsewhere, or that of another event of its task: try again.
 * - `absent`: no such event.
 * - `other`: it needs none: it is done, or waits for a worker anyway.
 */
export type RedriveResult = 'queued' | 'applied' | 'dead' | 'stale' | 'busy' | 'absent' | 'other';

/** What became of an event that was to be discarded. `other`: it runs, or is done. */
export type DiscardResult = 'discarded' | 'absent' | 'other';

/** One sender's events of one state. */
export interface SenderStats {
  /** Agent URL. */
  readonly sender: string;
  readonly state: InboxListQuery['state'];
  readonly count: number;
  /** When the oldest was stored, by the store's clock. Unix ms. */
  readonly oldestInsertedAt: number;
}

/** How many events are not done. */
export interface InboxStats {
  readonly queued: number;
  readonly leased: number;
  readonly dead: number;
  /** Those that have any, a row a state. */
  readonly senders: readonly SenderStats[];
  /** False where a state has `most` events or more: the oldest are counted. */
  readonly isComplete: boolean;
}

/** Which DEAD events `receiver.inbox.redriveMany` takes: those that fit all that is given. */
export interface RedriveManyQuery {
  /** True: counts, and changes nothing. */
  readonly dryRun: boolean;
  /** Agent URL; all senders where absent. */
  readonly sender?: string;
  /** Stored before it. Unix ms, by the store's clock. */
  readonly before?: number;
  /** Stands in `lastError`, as it is written there. */
  readonly error?: string;
}

/** Which events `receiver.inbox.discardMany` takes. */
export interface DiscardManyQuery extends RedriveManyQuery {
  /** `dead`. */
  readonly state?: 'dead' | 'queued';
}

/** What became of many events. */
export interface ManyResult<R extends string> {
  /** Events that fit. */
  readonly matched: number;
  /** The same by agent URL. */
  readonly senders: Readonly<Record<string, number>>;
  /** By what came of each; empty after a `dryRun`. */
  readonly results: Readonly<Partial<Record<R, number>>>;
}

/**
 * For the receiver's owner: events that are DEAD or stuck, in both modes. Every method rejects with `ConfigError`
 * where the store has no inbox or an argument is wrong, and with an error whose `code` is `store_unavailable` where it cannot be reached.
 */
export interface ReceiverInbox {
  /** Oldest first, a page at a time, without bodies. */
  readonly list: (query: InboxListQuery) => Promise<SeenEvents>;
  /** One event with its body and its last error; undefined where there is none. */
  readonly inspect: (sender: string, idempotencyKey: string) => Promise<SeenEvent | undefined>;
  /**
   * Runs a DEAD event again, with all of its attempts. Mode `inbox`: it goes back to the workers. Mode `inline`: its
   * handler runs in this process before the promise settles; one that is stuck (`queued`, or `leased` by a process
   * that died) is run too.
   */
  readonly redrive: (sender: string, idempotencyKey: string) => Promise<RedriveResult>;
  /**
   * Ends a DEAD or queued event without handling it; its duplicates are answered 200. `other`: it runs, or is done.
   */
  readonly discard: (sender: string, idempotencyKey: string) => Promise<DiscardResult>;
  /**
   * Counts by sender and state, from pages of 1 000 records: a call of the store for each.
   * @param query most: events of a state that are counted; 100 000.
   */
  readonly stats: (query?: { readonly most?: number }) => Promise<InboxStats>;
  /**
   * `redrive` for each DEAD event that fits, the oldest first: mode `inbox` four at a time, mode `inline` one after the
   * other, and there also what the command line has queued and no worker runs. Each at most once a call. Where it rejects, or the process ends, the next call goes on with those that are left.
   */
  readonly redriveMany: (query: RedriveManyQuery) => Promise<ManyResult<RedriveResult>>;
  /** `discard` for each event that fits, likewise; `other` where it has left the state meanwhile. */
  readonly discardMany: (query: DiscardManyQuery) => Promise<ManyResult<DiscardResult>>;
}
