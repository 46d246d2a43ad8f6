import type { EventChannel } from '../events/event.ts';

/** One delivery, as the store sees it. */
export interface AcceptRequest {
  /** Random per call of `verifyAndDispatch`; sent again it is the same accept and gets the same answer. */
  readonly acceptId: string;
  readonly sender: string;
  readonly mode: 'inline' | 'inbox';
  /** Checks 12 and 13; absent for legacy authentication, which has no nonce. */
  readonly nonce?: NonceClaim;
  /** Absent where the body gave no event (check 14, envelope errors): the nonce is burned alone. */
  readonly event?: EventClaim;
  /**
   * The delivery has waited for another one, and its first accept was told `replay`: it is bytes that came before, and
   * now asks without its nonce.
   */
  readonly replay?: boolean;
  /** Inline: the record is leased to `acceptId` for so long. Over 0 and 10 min at most in both modes, else ConfigError. Ms. */
  readonly leaseMs: number;
  /**
   * The process that will hold the lease, as `Store.alive` names it; kept on the record. Absent: a lease that runs out is
   * a crash, whatever became of the process.
   */
  readonly process?: string;
  /**
   * The caller's process runs the event already, perhaps on a lease that has run out: answered as under a live lease
   * (`in-flight`), and never leased here. Nothing else changes.
   */
  readonly isRunning?: boolean;
  /**
   * Key of another event of the same task that the caller's process runs: it holds the task here, also on a lease that has
   * run out, while nobody else has taken that (admission.md §4.7).
   */
  readonly runningKey?: string;
  /**
   * Inline: the caller's process has kept its one place for a suspect free for this accept, and it may be leased to it
   * (admission.md §4.6). Absent: `in-flight` with `suspect`.
   */
  readonly alone?: boolean;
  readonly limits: StoreLimits;
  readonly retry: RetryLimits;
  /** DONE records and unacknowledged ones live so long. Ms. */
  readonly retentionMs: number;
}

/** The signature's nonce: claimed with the event, or burned alone. */
export interface NonceClaim {
  /** By which nonces are counted: the place of the key id among 256 of its sender (admission.md §6.8). */
  readonly keyid: string;
  readonly nonce: string;
  /** When the nonce may be forgotten: just after `expires + 60 s`. Unix ms on the *receiver's* clock. */
  readonly expiresAtMs: number;
  /** Now on the receiver's clock: the store keeps the nonce for `expiresAtMs - nowMs` from its own now. Unix ms. */
  readonly nowMs: number;
}

/** The event that a delivery brings. */
export interface EventClaim {
  readonly key: string;
  /** The raw body, kept until DONE: the first copy is what every attempt handles. */
  readonly body: Uint8Array;
  /** SHA-256 of the raw body, lower-case hex. */
  readonly rawHash: string;
  /** SHA-256 of the canonical JSON (RFC 8785), lower-case hex, where the edition compares that. */
  readonly canonicalHash?: string;
  /** A changed payload under a used key: `first-wins`, or `conflict` (nothing changes, nothing is leased). */
  readonly onChanged: 'first-wins' | 'conflict';
  /** Present for kind `task`: its handlers never overlap, and with `instant` it is ordered. */
  readonly task?: TaskClaim;
  /**
   * Present for a terminal status of a task where a second one is refused (edition 3.2): SHA-256 of what it says, lower-case
   * hex (verification.md §2.19).
   */
  readonly terminalHash?: string;
  readonly notificationId?: string;
  /** By which URL its delivery came, at most 1 024 characters; kept with the record until it is done. */
  readonly url?: string;
  /** Whose work it is, for the process that runs it (W3C Trace Context); kept with the record until it is done. */
  readonly traceparent?: string;
  /** Present for kind `delivery-report`. */
  readonly report?: ReportClaim;
  /** Present for the other kinds where they name a media buy and have a valid time of their own. */
  readonly mediaBuy?: MediaBuyClaim;
}

/** contract.md §7.4: after a media buy's `final` report no further events fire. */
export interface ReportClaim {
  readonly mediaBuyIds: readonly string[];
  readonly final: boolean;
  /** Present where the report has a valid timestamp: `instantKey` of it. */
  readonly instant?: string;
}

/** The media buy that an event is of. */
export interface MediaBuyClaim {
  readonly id: string;
  /** `instantKey` of the event's own time. */
  readonly instant: string;
}

/** The task that an event belongs to. */
export interface TaskClaim {
  /** Of an event that names its operation alone: `operationRowId` of that. */
  readonly id: string;
  /** Present where the event has a valid timestamp: `instantKey` of it, ordered by plain byte comparison. */
  readonly instant?: string;
  /** The same instant in Unix ms, for "more than 5 min ahead". */
  readonly instantMs?: number;
  readonly terminal: boolean;
  /** Of a non-terminal status, in edition 3.2: it is not applied once the task has ended (admission.md §5.4). */
  readonly keepsEnd?: true;
  /** Present where several channels tell of the sender's tasks (`Receiver.observe`). */
  readonly told?: ToldClaim;
}

/** What a channel tells of a task (admission.md §5.9). */
export interface ToldClaim {
  readonly source: EventChannel;
  readonly status: string;
  /**
   * `operationRowId` of the operation, where the event names that and its task. On a record whose event names one of the two,
   * the other one, as another channel has told it.
   */
  readonly operation?: string;
  /** Of a terminal status: SHA-256 of what every channel says of it, lower-case hex. */
  readonly hash?: string;
  /** Of a non-terminal one without `instant`, where the buyer asked: when, on the store's clock. Unix ms. */
  readonly askedAt?: number;
  /**
   * On a record, of a terminal status that another channel has told too: the newer `TaskClaim.instant` of theirs; null: that
   * has none. The store's own.
   */
  readonly newest?: string | null;
}

/** What one sender, and all of them, may have stored; over it comes what processes have under way (admission.md §8.9). */
export interface StoreLimits {
  /** Records, task marks and notification ids of one sender. */
  readonly maxRecordsPerSender: number;
  /** Bodies of one sender's unfinished records, bytes. */
  readonly maxPendingBytesPerSender: number;
  /** Live nonces of one (sender, keyid). */
  readonly maxNoncesPerKey: number;
  /** Live nonces of one sender, over all its key ids. Absent: no such cap. */
  readonly maxNoncesPerSender?: number;
  /** Live nonces of all senders; may be approximate. */
  readonly maxNonces: number;
}

/** When a record is DEAD. */
export interface RetryLimits {
  /** Leases of a record before it is DEAD. */
  readonly attempts: number;
  /** Crashes that are charged to a record before it is DEAD: those of leases under which it was a suspect, and overruns. */
  readonly crashes: number;
}

/** Limits that a sender has used to 80 % or more after this accept; for the alarm. */
export type Pressure = 'records' | 'pending-bytes' | 'nonces' | 'sender-nonces' | 'all-nonces';

/** A decision, and the limits that are nearly used up. */
export type AcceptResult = AcceptDecision & {
  readonly pressure: readonly Pressure[];
  /** The store's clock was set back, by at least this, as this process has seen since the last answer; for the alarm. Ms. */
  readonly clockSteppedMs?: number;
  /** A terminal status, and another webhook has told one of its task under another key (admission.md §5.4a). */
  readonly secondEnd?: true;
  /** A terminal status whose key was used before for something else: the task's end is dropped (admission.md §5.4a). */
  readonly endDropped?: true;
};

/** What an accept decided; the rules are those of `Store.accept`. */
export type AcceptDecision =
  /** Inline: leased to this accept. Run the handler, then `complete` or `fail` with `owner`. */
  | {
      readonly changed: boolean;
      readonly kind: 'won';
      readonly lease: Lease;
      /** The stored first copy, where `changed`. */
      readonly body?: Uint8Array;
      readonly reemission: boolean;
      /** An end of the task came before: its mark is terminal and older than this event, or this is a second end. */
      readonly afterTerminal: boolean;
      /** A `final` report of one of the report's media buys came before; or of the event's, with an earlier time than its own. */
      readonly afterFinal: boolean;
      /** The event's instant is more than 5 min ahead of the store's clock: it will not raise the mark. */
      readonly ahead: boolean;
    }
  /** Inbox: inserted now, durable. */
  | {
      readonly changed: boolean;
      readonly kind: 'queued';
      readonly reemission: boolean;
      readonly ahead: boolean;
    }
  /** The record is finished. `died`: this accept found its attempts or crashes used up. */
  | {
      readonly changed: boolean;
      readonly kind: 'done';
      readonly state: 'applied' | 'stale' | 'dead';
      readonly died: boolean;
      /** The task ended before, by another channel's word; `hash`: that of its status, where it says something else. */
      readonly first?: { readonly source: EventChannel; readonly hash?: string };
    }
  /** Somebody holds a live lease on the record (inline), or it is safely queued (inbox). */
  | {
      readonly changed: boolean;
      readonly kind: 'in-flight';
      readonly replay?: boolean;
      /** Inline: nobody holds it, but it is a suspect, and waits for who asks `alone`. */
      readonly suspect?: true;
    }
  /** Inline: another event of the same task is being handled; this one is recorded (QUEUED), not safe. */
  | { readonly changed: boolean; readonly kind: 'task-busy'; readonly replay?: boolean }
  /**
   * Inline: for `leftMs` more it must not run. Bytes that came before, of an event whose back-off step is not over: nothing
   * written. Or a suspect that a charge puts off, whatever came.
   */
  | { readonly changed: boolean; readonly kind: 'backing-off'; readonly leftMs: number }
  /** Older than its task's mark; recorded DONE(stale) where there was room. */
  | { readonly changed: boolean; readonly kind: 'stale' }
  /** `onChanged: 'conflict'` and the payload differs: the first copy is kept. */
  | { readonly kind: 'conflict' }
  /** `terminalHash`, and the task has a terminal status that says something else and is safe: that one is kept; nothing written. */
  | { readonly kind: 'already-final' }
  /** `terminalHash`, and the task has a terminal status that is not safe yet; nothing written. */
  | { readonly kind: 'final-unsafe' }
  /** No event in the request: the nonce is burned. */
  | { readonly kind: 'burned' }
  | { readonly kind: 'replayed' }
  /** Over `maxNoncesPerKey`, `maxNoncesPerSender` or `maxNonces`; nothing written. */
  | { readonly kind: 'rate-abuse' }
  /** Over a sender's cap; nothing written. */
  | { readonly kind: 'over-cap'; readonly limit: 'records' | 'pending-bytes' };

/** The right to run an event's handler, until it runs out. */
export interface Lease {
  /** The `acceptId` of the accept that won (inline) or the worker's token (inbox). */
  readonly owner: string;
  /**
   * Counts the leases of the record, this one included, and never goes back: 1 says that no handler of it can have begun
   * before. It decides nothing in the store.
   */
  readonly run: number;
  /**
   * Attempts that are charged towards DEAD, this lease's included: 1 for the first run of the handler. Runs within one
   * back-off step have the same number, and a crash gives its attempt back.
   */
  readonly chargedAttempts: number;
  /**
   * A lease of this event ended by a crash, so the event may be what ended its process: it is to run alone, for a crash
   * under this lease is charged to it.
   */
  readonly suspect?: true;
}
