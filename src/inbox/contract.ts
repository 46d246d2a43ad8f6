import type { InboxPage, InboxRecord } from '../stores/contract.ts';

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
  readonly discard: (sender: string, idempotencyKey: string) => Promise<'discarded' | 'absent' | 'other'>;
}
