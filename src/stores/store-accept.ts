// The request and the decisions of `Store.accept` (admission.md §3).
// Made by `src/stages/admit.ts`, decided by `rules/accept-rules.ts`. Types only.
import type { EventChannel } from '../events/event.ts';
import type { ClaimedState, ClaimedWindow, StateClaim, UrlClaim, WindowClaim } from './store-accounts.ts';

/**
 * One delivery, which a receiver passes to `Store.accept` for a decision. It contains the sender, the signature's
 * nonce, the event, and the limits of what is stored.
 *
 * The first delivery with an event's key claims that key: the event is stored under it. Every later delivery of the
 * sender with the same key is a duplicate. Nonces are claimed in the same way, against replays.
 */
export interface AcceptRequest {
  /** The random id of one call of `verifyAndDispatch`. A request that is repeated with this id gets the same answer. */
  readonly acceptId: string;
  /** The seller's agent URL. */
  readonly sender: string;
  /** The receiver's mode, which decides if the caller or a worker runs the handler. */
  readonly mode: 'inline' | 'inbox';
  /** The signature's nonce. Absent for legacy authentication, which has none. */
  readonly nonce?: NonceClaim;
  /** Absent if the body has no valid event: then only the nonce is stored, so that it cannot be used again. */
  readonly event?: EventClaim;
  /**
   * True for a request that repeats, after a wait, one whose answer had `replay`: the delivery's bytes came before. The
   * repeated request has no nonce, so only this member shows it.
   */
  readonly replay?: boolean;
  /**
   * The duration of a lease to `acceptId` (inline), ms. It must be above 0 and at most 10 min in both modes,
   * otherwise ConfigError.
   */
  readonly leaseMs: number;
  /**
   * The process that will hold the lease, as in `Store.alive`; the record keeps it. Absent: an expired lease is a
   * crash, even if the process is alive.
   */
  readonly process?: string;
  /**
   * True if the caller's process already runs the event, perhaps on an expired lease. The answer is `in-flight`, as
   * under a live lease, and the record is never leased. Nothing else changes.
   */
  readonly isRunning?: boolean;
  /**
   * The key of another event of the same task that the caller's process runs. That event holds the task for this
   * request, even on an expired lease, unless another process took the task.
   */
  readonly runningKey?: string;
  /**
   * True if the caller's process has reserved its one slot for suspects for this accept (inline), so that a suspect may
   * be leased. A suspect is an event whose run ended by a crash. Absent: the answer for a suspect is `in-flight` with
   * `suspect`.
   */
  readonly alone?: boolean;
  readonly limits: StoreLimits;
  readonly retry: RetryLimits;
  /** The time for which DONE and unacknowledged records are kept, ms. */
  readonly retentionMs: number;
}

/**
 * The nonce of a delivery's signature, which `Store.accept` remembers so that the same request is not accepted
 * twice: the member `nonce` of an `AcceptRequest`. A receiver sets it for signed deliveries only.
 */
export interface NonceClaim {
  /** The name of the group in which the nonce is counted. A sender has 256 groups; a hash of the key id chooses one. */
  readonly keyid: string;
  /** Identifies the nonce: a text made of the key id and the nonce. */
  readonly nonce: string;
  /** The time from which the nonce may be forgotten, just after `expires + 60 s`. Unix ms on the *receiver's* clock. */
  readonly expiresAtMs: number;
  /**
   * The present time on the receiver's clock, Unix ms. The store keeps the nonce for `expiresAtMs - nowMs` from its
   * own present time.
   */
  readonly nowMs: number;
}

/**
 * The event of a delivery: its idempotency key, its body, and the facts by which the store compares and orders it.
 * It is the member `event` of an `AcceptRequest`. The first delivery with the key claims it; later ones are
 * duplicates.
 */
export interface EventClaim {
  /** The idempotency key of the event. */
  readonly key: string;
  /** The raw body, kept until DONE. Every attempt handles the first copy. */
  readonly body: Uint8Array;
  /** The SHA-256 of the raw body, lower-case hex. */
  readonly rawHash: string;
  /**
   * The SHA-256 of the canonical JSON (RFC 8785), lower-case hex. Present if the protocol's edition compares bodies by
   * it.
   */
  readonly canonicalHash?: string;
  /**
   * The reaction to a changed payload under a used key. `first-wins`: the first copy is used. `conflict`: nothing
   * changes and nothing is leased.
   */
  readonly onChanged: 'first-wins' | 'conflict';
  /** The task, present for kind `task`: its handlers never overlap, and its events with an `instant` are ordered. */
  readonly task?: TaskClaim;
  /** The SHA-256 of a terminal status, lower-case hex. Present if a second terminal status is refused (edition 3.2). */
  readonly terminalHash?: string;
  readonly notificationId?: string;
  /** The URL of the delivery, at most 1 024 characters. The record keeps the URL until the event is done. */
  readonly url?: string;
  /**
   * The trace of the delivery (W3C Trace Context), for the process that runs the event. The record keeps the trace
   * until the event is done.
   */
  readonly traceparent?: string;
  /** The report, present for kind `delivery-report`. */
  readonly report?: ReportClaim;
  /**
   * The URL to which the event was sent, and the rows of kind `stream` of the media buys that the event is about. The
   * store records the use of the URL with each media buy whose seller was asked to send there. Present if the receiver
   * has registrations, and the URL is registered.
   */
  readonly via?: UrlClaim;
  /** The media buy of an event of another kind. Present if the event names one and has a valid time of its own. */
  readonly mediaBuy?: MediaBuyClaim;
  /** The state that a notification reports, e.g. of an impairment. Present if the receiver has registrations. */
  readonly state?: StateClaim;
}

/**
 * The media buys that a delivery report covers: the member `report` of an `EventClaim`. The store remembers the
 * first `final` report of each, so that a receiver can warn about events that come after it.
 */
export interface ReportClaim {
  readonly mediaBuyIds: readonly string[];
  /**
   * For each media buy with a row in the report: the row's period, and facts beside the data, e.g. the time of the next
   * data. Present if the receiver has registrations.
   */
  readonly windows?: readonly WindowClaim[];
  /**
   * True if the buyer pulled the report. Such a report is a duplicate if the data of each of its windows came before,
   * or are in another event that is not done.
   */
  readonly isPulled?: true;
  /** True if it is the final report of its media buys. */
  readonly final: boolean;
  /** The comparison key of the report's timestamp. Present if the timestamp is valid. */
  readonly instant?: string;
}

/**
 * The media buy that an event names, with the event's own time: the member `mediaBuy` of an `EventClaim`. If that
 * time is later than the media buy's `final` report, the store answers with `afterFinal`, and the event gets a
 * warning.
 */
export interface MediaBuyClaim {
  readonly id: string;
  /** The comparison key of the event's own time. */
  readonly instant: string;
}

/**
 * The task whose status an event reports: the member `task` of an `EventClaim`. The store lets no two handlers of
 * one task run at a time, and never applies a status that is older than one already applied.
 */
export interface TaskClaim {
  /** The task's id. If an event names only its operation, it is `operationRowId` of the operation. */
  readonly id: string;
  /** The comparison key of the event's timestamp, which sorts by plain bytes. Present if the timestamp is valid. */
  readonly instant?: string;
  /**
   * The time of `instant` in Unix ms. A time that is more than 5 min ahead of the store's clock does not become the
   * newest time of its task (`mark`).
   */
  readonly instantMs?: number;
  /** True if the status ends the task. */
  readonly terminal: boolean;
  /** Present for a non-terminal status in edition 3.2: such a status is not applied after the task has ended. */
  readonly keepsEnd?: true;
  /**
   * The status as its channel reported it: a webhook, the answer of a call, or a poll. Present if the receiver has
   * `registrations`. The store then applies a status once, whichever channels report it.
   */
  readonly told?: ToldClaim;
}

/**
 * The status of a task as one channel reported it: a webhook, the answer of a call, or a poll. It is the member
 * `told` of a `TaskClaim`. With it the store recognises a status that arrives by several channels and applies it
 * once.
 */
export interface ToldClaim {
  readonly source: EventChannel;
  readonly status: string;
  /**
   * The `operationRowId` of the operation, if the event names both operation and task. If the event names only one of
   * them, another channel's report of the same status may name the other. The store then adds it here, on its record.
   */
  readonly operation?: string;
  /** The SHA-256 of a terminal status, lower-case hex, over the parts that every channel reports. */
  readonly hash?: string;
  /**
   * The time at which the buyer asked for the status, Unix ms on the store's clock. Present for a non-terminal status
   * without `instant`, if the buyer asked.
   */
  readonly askedAt?: number;
  /**
   * The newest `TaskClaim.instant` of all channels that reported the same terminal status; null if a later report had
   * none. Only the store sets it, on records.
   */
  readonly newest?: string | null;
}

/**
 * The largest numbers of records, body bytes and nonces that a store keeps, per sender, per key id, and in total. It
 * is the member `limits` of an `AcceptRequest`. Above them `Store.accept` answers `over-cap` or `rate-abuse`.
 * Deliveries that are in progress at the same time may exceed them.
 */
export interface StoreLimits {
  /** The largest number of records, tasks, notification ids and registrations of one sender. */
  readonly maxRecordsPerSender: number;
  /** The largest total size of the bodies of one sender's unfinished records, bytes. */
  readonly maxPendingBytesPerSender: number;
  /** The largest number of live nonces of one (sender, keyid). */
  readonly maxNoncesPerKey: number;
  /** The largest number of live nonces of one sender, over all its key ids. Absent: no such cap. */
  readonly maxNoncesPerSender?: number;
  /** The largest number of live nonces of all senders. It may be approximate. */
  readonly maxNonces: number;
}

/**
 * The numbers of failed runs and of crashes after which the store gives an event up: the member `retry` of requests
 * to a store. The event is then DEAD: it is kept for an operator and no longer runs.
 */
export interface RetryLimits {
  /** The number of counted attempts to run the handler after which a record becomes DEAD. */
  readonly attempts: number;
  /**
   * The number of charged crashes after which a record becomes DEAD. A crash is charged if the record was a suspect
   * already. An overrun always counts as one.
   */
  readonly crashes: number;
}

/**
 * The limits of `StoreLimits` of which 80 % or more is used after a call of `Store.accept`, e.g. `records` for
 * `maxRecordsPerSender`. The receiver raises an alarm for each.
 */
export type Pressure = 'records' | 'pending-bytes' | 'nonces' | 'sender-nonces' | 'all-nonces';

/**
 * The result of `Store.accept`: the decision on one delivery (`kind`), with facts for the receiver's alarms. These are
 * limits that are nearly used up, a clock that was set back, and mistakes of sellers.
 */
export type AcceptResult = AcceptDecision & {
  readonly pressure: readonly Pressure[];
  /**
   * The store's clock was set back by at least this amount, ms, as this process noticed since its last answer. It is
   * for the alarm.
   */
  readonly clockSteppedMs?: number;
  /** Present for a terminal status of a task whose end another webhook reported before, under another key. */
  readonly secondEnd?: true;
  /** Present if the end of a task is dropped, because its key was used before for another payload. */
  readonly endDropped?: true;
  /**
   * Present for a report if not all of its windows were kept. The report names media buys that nobody has registered,
   * and the sender has named too many such media buys.
   */
  readonly claimsDropped?: true;
  /** Present if an older state was dropped, because one media buy or subscription has too many states. */
  readonly stateDropped?: true;
};

/**
 * The store's decision on one delivery, by `kind`. `won` means that the caller runs the handler now. `queued` means
 * that a worker will run it. Every other kind means that the caller runs nothing. `Store.accept` describes when each
 * applies.
 *
 * `changed`: the body differs from the first copy under its key. `reemission`: the notification was seen under
 * another key before.
 */
export type AcceptDecision =
  /**
   * Mode inline: the event is leased to this accept. Run the handler, then call `complete` or `fail` with the lease's
   * `owner`.
   */
  | {
      readonly changed: boolean;
      readonly kind: 'won';
      readonly lease: Lease;
      /** The stored first copy. Present if the payload of this delivery differs (`changed`). */
      readonly body?: Uint8Array;
      readonly reemission: boolean;
      /**
       * True if the task has ended before: its newest applied status is terminal and older than this event, or this is
       * a second terminal status.
       */
      readonly afterTerminal: boolean;
      /**
       * True if a `final` report of one of the event's media buys came before. For an event that is no report, that
       * report's time must also be earlier than the event's own.
       */
      readonly afterFinal: boolean;
      /**
       * The report windows whose data the event brings, with the facts that the store found when it inserted the event.
       */
      readonly windows?: readonly ClaimedWindow[];
      /** The state that the event reported, with the facts that the store found when it inserted the event. */
      readonly claimedState?: ClaimedState;
      /**
       * True if the event's instant is more than 5 min ahead of the store's clock. Such an instant does not become the
       * newest time of its task (`mark`).
       */
      readonly ahead: boolean;
    }
  /** Mode inbox: the event was stored now and is durable. */
  | {
      readonly changed: boolean;
      readonly kind: 'queued';
      readonly reemission: boolean;
      readonly ahead: boolean;
    }
  /** The event is finished. `died`: this accept made it DEAD, because no attempts or crashes were left. */
  | {
      readonly changed: boolean;
      readonly kind: 'done';
      readonly state: 'applied' | 'stale' | 'dead';
      readonly died: boolean;
      /**
       * Present if another channel reported the task's terminal status first. `hash` is the hash of that first status,
       * present if it differs from the hash of this event's status.
       */
      readonly first?: { readonly source: EventChannel; readonly hash?: string };
    }
  /** The event is running under a live lease (inline), or is acknowledged and waits for a worker (inbox). */
  | {
      readonly changed: boolean;
      readonly kind: 'in-flight';
      readonly replay?: boolean;
      /** Present (inline) if the event is a suspect that nobody runs, so that it waits for an accept with `alone`. */
      readonly suspect?: true;
    }
  /**
   * Mode inline: another event of the same task is running. The event of this delivery is stored (QUEUED), but not
   * acknowledged.
   */
  | { readonly changed: boolean; readonly kind: 'task-busy'; readonly replay?: boolean }
  /**
   * Inline: the event must not run for another `leftMs`, ms. Either the same request came again during its back-off,
   * and nothing was written. Or the event is a suspect whose wait after a charged crash is not over.
   */
  | { readonly changed: boolean; readonly kind: 'backing-off'; readonly leftMs: number }
  /** The event is older than the newest applied status of its task. It is stored as DONE(stale) if the limits allow. */
  | { readonly changed: boolean; readonly kind: 'stale' }
  /** The payload differs and `onChanged` is `conflict`: the first copy is kept. */
  | { readonly kind: 'conflict' }
  /**
   * The task has another terminal status, with another `terminalHash`, which is acknowledged and is kept. Nothing was
   * written.
   */
  | { readonly kind: 'already-final' }
  /**
   * The task has a terminal status that is not acknowledged yet, so this one (`terminalHash`) cannot be decided.
   * Nothing was written.
   */
  | { readonly kind: 'final-unsafe' }
  /** The request has no event: its nonce was stored, so it cannot be used again. */
  | { readonly kind: 'burned' }
  /** The nonce was used before: the request is a replay. */
  | { readonly kind: 'replayed' }
  /** `maxNoncesPerKey`, `maxNoncesPerSender` or `maxNonces` is reached. Nothing was written. */
  | { readonly kind: 'rate-abuse' }
  /** A limit of the sender is reached. Nothing was written. */
  | { readonly kind: 'over-cap'; readonly limit: 'records' | 'pending-bytes' };

/**
 * The right to run the handler of one event until a time, given to one owner by `Store.accept` or
 * `StoreInbox.lease`. The owner ends it with `Store.complete` or `Store.fail`, or prolongs it with `Store.renew`.
 * Once it has expired, the event may be leased to another owner.
 */
export interface Lease {
  /** The owner: the `acceptId` of the accept that won (inline), or the `owner` of the worker's request (inbox). */
  readonly owner: string;
  /**
   * The number of leases of the record, including this one. It never decreases. 1 proves that no handler of it can
   * have begun before. The store makes no decision by it.
   */
  readonly run: number;
  /**
   * The number of attempts charged towards DEAD, including this lease: 1 for the first run of the handler. A run
   * that starts before the back-off is over counts no further attempt. If a run ends by a crash, its attempt is taken
   * off again, and crashes have a limit of their own.
   */
  readonly chargedAttempts: number;
  /**
   * Present if a lease of this event ended by a crash, so that the event may have ended its process. It runs alone,
   * and a further crash counts towards the limit of crashes.
   */
  readonly suspect?: true;
}
