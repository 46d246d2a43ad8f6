// The store's operations for workers and operators, `Store.inbox` (admission.md §4).
// Called by `src/inbox`, decided by `rules/claim.ts`. Types only.
import type { Lease, RetryLimits } from './store-accept.ts';
import type { ClaimedState, ClaimedWindow } from './store-accounts.ts';
import type { EventChannel } from '../events/event.ts';

/**
 * The part of a store that workers and operators use: leasing queued events, listing them, running DEAD ones again.
 * `Store.inbox` is one. The words and rules of `Store` apply.
 */
export interface StoreInbox {
  /**
   * Leases acknowledged events that are due: QUEUED after their back-off, or LEASED with an expired lease. If the
   * process of an expired lease has expired too, it is a crash. The attempt is then given back and the event
   * becomes a suspect.
   *
   * A suspect is leased only by a call with `alone`. A charged suspect is due no sooner than a minute later.
   *
   * Each candidate is decided in its own atomic step:
   *
   * - no attempts or crashes left → DEAD, reported in `died`;
   * - older than its task's mark → DONE(stale);
   * - its task is held by another record's live lease → left alone;
   * - otherwise LEASED: owner, `run` + 1, attempts + 1.
   *
   * At most one event of a task is leased. Senders with due events take turns from call to call, each with its
   * oldest event first.
   *
   * If a call was not answered, it may have leased events that nobody runs. Repeat it with the same `owner`: an
   * expired lease of the caller's own is neither a crash nor an attempt.
   */
  lease(request: LeaseDueRequest): Promise<LeaseDueResult>;
  /**
   * Lists records by state, oldest first, without bodies. Each page is a separate snapshot. A record that is in the
   * state from before the first page until after the last is on exactly one page. One that enters or leaves the
   * state meanwhile is on one or none.
   */
  list(query: InboxQuery): Promise<InboxPage>;
  /**
   * Counts the records in each state, by sender; the numbers of one sender are of one moment. Without it
   * `receiver.inbox.stats` reads pages. Optional for other stores.
   */
  counts?(): Promise<readonly InboxCount[]>;
  /** Returns one record with its body; undefined if there is none. */
  inspect(sender: string, key: string): Promise<InboxRecord | undefined>;
  /** Queues a DEAD record again, due immediately, with attempts and crashes 0. `other`: the record is not DEAD. */
  redrive(sender: string, key: string): Promise<'queued' | 'absent' | 'other'>;
  /**
   * Ends a DEAD or QUEUED record without handling it: DONE(stale). Its duplicates are still answered. `other`: it
   * is leased or done.
   * @param retentionMs the time for which the record is kept from now, ms.
   * @param only the required state; the answer is `other` in the other state, e.g. if it was redriven meanwhile.
   */
  discard(
    sender: string,
    key: string,
    retentionMs: number,
    only?: 'dead' | 'queued',
  ): Promise<'discarded' | 'absent' | 'other'>;
  /**
   * Returns for how long the first due event that `lease` would consider has been due, ms; undefined if none is due. It
   * considers acknowledged events that are QUEUED after their back-off, or LEASED with an expired lease.
   *
   * The result is for the alarm that no worker leases events; no answer depends on it. Optional for other stores.
   */
  overdueMs?(): Promise<number | undefined>;
}

/**
 * Asks `StoreInbox.lease` for events whose handlers a worker is to run next. The call leases each returned event to
 * `owner` for `leaseMs`.
 */
export interface LeaseDueRequest {
  /**
   * The owner of every lease that the call makes: a random text for each call. Use the same text again to repeat a call
   * that was not answered.
   */
  readonly owner: string;
  /** The largest number of events. */
  readonly max: number;
  /** The duration of the leases, ms. It must be above 0 and at most 10 min, otherwise ConfigError. */
  readonly leaseMs: number;
  /** The process that will hold the leases, as in `AcceptRequest`. */
  readonly process?: string;
  /**
   * The events that the caller's process already runs. They are neither leased nor changed, even if their lease has
   * expired. Each of these events still holds its task, unless another process took the task.
   */
  readonly except?: readonly { readonly sender: string; readonly key: string }[];
  /**
   * If true, the call leases at most one event, and only a suspect: the fewest crashes first, then the oldest. Nothing
   * else runs in the caller's process meanwhile. Absent or false: no suspects are leased.
   */
  readonly alone?: boolean;
  readonly retry: RetryLimits;
  /** The time for which events that end without a run are remembered, ms. */
  readonly retentionMs: number;
  /** The configured senders. A store that keeps a list of senders also considers those on its list. */
  readonly senders: readonly string[];
}

/**
 * The result of `StoreInbox.lease`: the events that it leased, the events that it ended without a run, and the time
 * after which to ask again.
 */
export interface LeaseDueResult {
  readonly events: readonly LeasedEvent[];
  /** The events that became DEAD in this call, for the alarm. */
  readonly died: readonly { readonly sender: string; readonly key: string }[];
  /**
   * The events that became DONE(stale) in this call. Absent if there are none. A store of your own may leave this out.
   */
  readonly stale?: readonly { readonly sender: string; readonly key: string }[];
  /** The time until the next known event comes due, ms; absent if none is known. A due suspect is not included. */
  readonly nextDueMs?: number;
  /** The amount by which the store's clock was set back, ms, as in `AcceptResult`. */
  readonly clockSteppedMs?: number;
  /**
   * True if a suspect is due that this call could not lease. The caller is to finish its running events and then to
   * call with `alone`.
   */
  readonly suspectDue?: boolean;
}

/**
 * An event that `StoreInbox.lease` has leased to a worker: its stored body, the lease, and the same facts that
 * `accept` returns with `won`.
 */
export interface LeasedEvent {
  readonly sender: string;
  readonly key: string;
  readonly lease: Lease;
  /** The time since the event was stored, ms on the store's clock. Absent if it is unknown. */
  readonly waitedMs?: number;
  /** The URL of the delivery, as in `EventClaim`. */
  readonly url?: string;
  /** The trace of the delivery, as in `EventClaim`. */
  readonly traceparent?: string;
  /** The channel by which the event came, e.g. `webhook` or `poll`. Present if its `TaskClaim` has `told`. */
  readonly source?: EventChannel;
  readonly body: Uint8Array;
  readonly reemission: boolean;
  readonly afterTerminal: boolean;
  readonly afterFinal: boolean;
  readonly windows?: readonly ClaimedWindow[];
  readonly claimedState?: ClaimedState;
  readonly ahead: boolean;
}

/**
 * Selects the events that `StoreInbox.list` returns: one state, of one sender or of all, one page at a time. `after`
 * is the `next` of the page before.
 */
export interface InboxQuery {
  readonly state: 'queued' | 'leased' | 'dead';
  readonly sender?: string;
  /** The largest number of records, 1 to 1000. */
  readonly limit: number;
  /** The `next` of the previous page. Absent: the first page. */
  readonly after?: string;
}

/** One page of events from `StoreInbox.list`, oldest first. Pass `next` as `after` to get the next page. */
export interface InboxPage {
  readonly records: readonly InboxRecord[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** The records of one sender in one state, as `StoreInbox.counts` counts them. */
export interface InboxCount {
  /** The seller's agent URL. */
  readonly sender: string;
  readonly state: InboxQuery['state'];
  /** The number of records, over 0. */
  readonly count: number;
  /** The time at which the oldest of these records was stored, Unix ms on the store's clock. */
  readonly oldestInsertedAt: number;
}

/**
 * An event as `StoreInbox.list` and `inspect` return it to operators: its state, runs, last error, times and size.
 * Times are Unix ms on the store's clock, sizes are bytes.
 */
export interface InboxRecord {
  readonly sender: string;
  /** The idempotency key. */
  readonly key: string;
  readonly state: 'queued' | 'leased' | 'applied' | 'stale' | 'dead';
  /** True if the event is acknowledged: the seller was or may be answered 2xx. */
  readonly acked: boolean;
  /** The number of leases so far, which is `ctx.run` of the last one. */
  readonly runs: number;
  /** The number of attempts counted towards DEAD; `crashes` is the number of charged crashes. */
  readonly attempts: number;
  readonly crashes: number;
  /** The time at which the event was stored. */
  readonly insertedAt: number;
  /** The time before which workers do not take a QUEUED record. In other states it has no meaning. */
  readonly notBefore: number;
  /** The end of the lease of a LEASED record. */
  readonly leaseUntil: number;
  /**
   * Present if a lease of the record ended by a crash, so that workers run it alone. It is removed when the record
   * is completed, its handler fails, or it is redriven.
   */
  readonly suspect?: true;
  readonly taskId?: string;
  /** The channel by which the event came, e.g. `webhook` or `poll`. Present if its `TaskClaim` has `told`. */
  readonly source?: EventChannel;
  /** The URL of the delivery as in `EventClaim`, kept until DONE. */
  readonly url?: string;
  readonly bodyBytes: number;
  /** The `FailRequest.error` of the last failed run. */
  readonly lastError?: string;
  /** The body. Only `inspect` returns it, until DONE. */
  readonly body?: Uint8Array;
}
