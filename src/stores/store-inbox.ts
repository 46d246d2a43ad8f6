import type { Lease, RetryLimits } from './store-accept.ts';
import type { EventChannel } from '../events/event.ts';

/** What workers and operators ask of a store (mode `inbox`). Every rule of `Store` holds for these methods too. */
export interface StoreInbox {
  /**
   * Leases acknowledged events that are due: QUEUED and past their back-off, or LEASED with a lease that ran out. Where
   * the process of that one is over too it is a crash: the attempt is given back, and the event becomes a suspect, which only
   * a call with `alone` is given; a suspect is charged, and then due no sooner than a minute later (admission.md §4.6). First the sweep of each candidate, in its own atomic step: attempts or crashes used up → DEAD,
   * told in `died`; older than its task's mark → DONE(stale); its task held by another record's live lease → left
   * alone. Else LEASED: owner, `run` + 1, attempts + 1. One event a task; senders that have any due take turns, from call
   * to call, and of each the oldest is first.
   *
   * A call that was not answered may have leased events that nobody runs. It is made again with its `owner`: a lease
   * that ran out and was the caller's own is neither a crash nor an attempt.
   */
  lease(request: LeaseDueRequest): Promise<LeaseDueResult>;
  /**
   * Records by state, oldest first, without bodies. Each page is of its own moment: a record that is in the state from
   * before the first page until after the last is on exactly one of them; one that comes or goes meanwhile may be on
   * one or on none.
   */
  list(query: InboxQuery): Promise<InboxPage>;
  /** One record with its body; undefined where there is none. */
  inspect(sender: string, key: string): Promise<InboxRecord | undefined>;
  /** DEAD → QUEUED, due at once, attempts and crashes 0. `other`: the record is not DEAD. */
  redrive(sender: string, key: string): Promise<'queued' | 'absent' | 'other'>;
  /**
   * DEAD or QUEUED → DONE(stale): never handled, its duplicates still answered. `other`: it is leased or done.
   * @param retentionMs how long the record is remembered from now.
   * @param only `other` in the other state: it was redriven, say, since it was looked at.
   */
  discard(
    sender: string,
    key: string,
    retentionMs: number,
    only?: 'dead' | 'queued',
  ): Promise<'discarded' | 'absent' | 'other'>;
  /**
   * How long ago the event came due that came due first, of those that `lease` would look at: acknowledged, QUEUED and
   * past its back-off, or LEASED with a lease that ran out. Ms; undefined where none is due. For the alarm that nobody
   * leases (admission.md §4.13); nothing that is answered rests on it. Optional for stores of other makers.
   */
  overdueMs?(): Promise<number | undefined>;
}

/** A worker's request for work. */
export interface LeaseDueRequest {
  /** The owner of every lease that it gives. Random per call; the same again where the one before was not answered. */
  readonly owner: string;
  /** At most so many events. */
  readonly max: number;
  /** Over 0 and 10 min at most, else ConfigError. Ms. */
  readonly leaseMs: number;
  /** As in `AcceptRequest`. */
  readonly process?: string;
  /**
   * What the caller's process runs already: neither given nor changed, also where its lease has run out. It still holds
   * its task then, where nobody has taken that over.
   */
  readonly except?: readonly { readonly sender: string; readonly key: string }[];
  /**
   * true: at most one event, and only a suspect, fewest crashes first, then oldest: nothing else runs in the caller's
   * process meanwhile. Absent or false: no suspects.
   */
  readonly alone?: boolean;
  readonly retry: RetryLimits;
  readonly retentionMs: number;
  /** Configured senders; a store that registers senders itself adds those. */
  readonly senders: readonly string[];
}

/** Work, and what came to light while looking for it. */
export interface LeaseDueResult {
  readonly events: readonly LeasedEvent[];
  /** Events that became DEAD in this call, for the alarm. */
  readonly died: readonly { readonly sender: string; readonly key: string }[];
  /** Events that became DONE(stale) in this call. Absent where none did; stores of other makers may never say. */
  readonly stale?: readonly { readonly sender: string; readonly key: string }[];
  /** Ms until something is known to come due; absent where nothing is known to. A suspect that is due is not counted. */
  readonly nextDueMs?: number;
  /** As `AcceptResult` has it. */
  readonly clockSteppedMs?: number;
  /** A suspect is due that this call could not give: the caller is to let what runs finish, and to ask with `alone`. */
  readonly suspectDue?: boolean;
}

/** An event to be handled, as `won` has it. */
export interface LeasedEvent {
  readonly sender: string;
  readonly key: string;
  readonly lease: Lease;
  /** How long ago it was stored, by the store's clock. Ms. Absent: not known. */
  readonly waitedMs?: number;
  /** As its claim had it. */
  readonly url?: string;
  readonly traceparent?: string;
  /** By which channel it came, where its claim said so. */
  readonly source?: EventChannel;
  readonly body: Uint8Array;
  readonly reemission: boolean;
  readonly afterTerminal: boolean;
  readonly afterFinal: boolean;
  readonly ahead: boolean;
}

/** Which records to list. */
export interface InboxQuery {
  readonly state: 'queued' | 'leased' | 'dead';
  readonly sender?: string;
  /** At most so many; 1 to 1000. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string;
}

/** A page of records. */
export interface InboxPage {
  readonly records: readonly InboxRecord[];
  /** Absent on the last page. */
  readonly next?: string;
}

/** A record as its owner sees it. Instants are Unix ms on the store's clock. */
export interface InboxRecord {
  readonly sender: string;
  readonly key: string;
  readonly state: 'queued' | 'leased' | 'applied' | 'stale' | 'dead';
  readonly acked: boolean;
  /** Leases so far: `ctx.run` of the last one. */
  readonly runs: number;
  /** Attempts and crashes that are charged towards DEAD. */
  readonly attempts: number;
  readonly crashes: number;
  readonly insertedAt: number;
  /** QUEUED: workers leave it alone until then. Of the other states it says nothing. */
  readonly notBefore: number;
  /** LEASED: until then. */
  readonly leaseUntil: number;
  /** A lease of it ended by a crash: workers run it alone. Until it is completed, its handler fails, or it is redriven. */
  readonly suspect?: true;
  readonly taskId?: string;
  /** By which channel it came, where its claim said so. */
  readonly source?: EventChannel;
  /** As its claim had it, until DONE. */
  readonly url?: string;
  readonly bodyBytes: number;
  /** `FailRequest.error` of the last run that failed. */
  readonly lastError?: string;
  /** `inspect` only, until DONE. */
  readonly body?: Uint8Array;
}
