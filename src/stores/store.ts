import type { StoreInbox } from './store-inbox.ts';
import type { AcceptRequest, AcceptResult, RetryLimits } from './store-accept.ts';
import type { StoreRegistrations } from './store-registrations.ts';

export type * from './store-accept.ts';
export type * from './store-inbox.ts';
export type * from './store-registrations.ts';

/**
 * The operations of a store, whatever database it is built on. It keeps one record per `(sender, idempotency key)`.
 * `sender` is the seller's agent URL, never a key id, so that a record survives key rotation.
 *
 * ```text
 * ∅ ─ accept ─► QUEUED ─ lease ─► LEASED(owner, until) ─ complete(owner) ─► DONE(applied | stale)
 *                 ▲                 │        │ until passed: anyone may lease, new owner
 *                 └─── fail(owner) ─┘        └─ attempts or crashes used up, or permanent ─► DEAD
 * ```
 *
 * Rules for every method:
 *
 * - It is one atomic operation, on the store's own clock plus `clockOffsetMs()`.
 * - It resolves only when its answer is as durable as `durability()` says, reads included. Every 2xx and every
 *   `replayed` of a receiver depends on one of these answers.
 * - If it cannot decide, it rejects with `Fault('store_unavailable' | 'not_durable')`, and the same call may be
 *   made again. `accept` is idempotent by its `acceptId`, and `complete`, `fail` and `renew` by their owner.
 */
export interface Store<Tx = unknown> {
  /** The name for logs, e.g. `memory` or `sqlite`. */
  readonly name: string;
  /**
   * Opens the store: creates or checks the schema, and reads the settings back. Idempotent. After `close` it opens
   * again with the rows that were there; `receiver.start()` does so.
   * @throws ConfigError with the fix.
   */
  open(): Promise<void>;
  /**
   * Returns the durability of an answered operation, read from the database's real settings; `unknown` if they
   * cannot be read. Call it after `open`.
   */
  durability(): Promise<Durability | 'unknown'>;
  /**
   * Returns the identity of the store, which is made with it. An empty store in place of a full one has a different
   * identity. Call it after `open`. Absent: nobody is notified of a new store.
   */
  identity?(): Promise<StoreIdentity>;
  /**
   * Sets the durability that a receiver's answers require. It is called once, after `durability()` or
   * `durability.declared` was found sufficient. From then on an operation with less rejects with
   * `Fault('not_durable')`.
   *
   * `lowered` is called if an operation meets the requirement, but has less durability than `durability()` last
   * returned. With several receivers the strongest requirement applies. Absent: only `durability()` is checked.
   */
  keepDurability?(required: Durability, lowered: (message: string) => void): void;
  /**
   * Calls `changed` if an open store turns out to be another one: emptied (Redis `FLUSHALL`) or replaced. If
   * `changed` throws, operations reject with its error as `Fault('misconfigured')`, until the store is the former
   * one again.
   *
   * The store checks at most every 10 s, while it is used. Absent: only `identity()` is checked.
   */
  watchIdentity?(changed: (identity: StoreIdentity) => void): void;
  /** The settings of the database that the operator has to change if `durability()` is too weak, in one sentence. */
  readonly durabilityAdvice?: string;
  /**
   * `accept`, step by step: the first that applies decides. A record is *safe* when it is acknowledged: in inbox
   * mode from insertion, in inline mode from DONE or DEAD. (admission.md §3.1 to §3.8.)
   *
   * 1. nonce known: with this `acceptId` → the same accept: go on. Bound to no event or another one, or to this one
   *    and its record is safe or gone → `replayed`. Bound to this one, not safe → go on. Unknown and over a nonce
   *    cap → `rate-abuse`. No event in the request → insert it bound to none: `burned`.
   * 2. record known (in each case the fresh nonce is bound to it; record caps are not looked at):
   *    - this `acceptId` inserted, leased or ended it → the answer it got then. `in-flight` and `task-busy` are no
   *      last words: the same accept again is decided anew, and that is how a waiting delivery takes over without
   *      its own nonce being `replayed`. So is a lease that ran out, was given back or went to somebody else: it is
   *      nobody's, and a handler must not start on it;
   *    - payload changed and `onChanged: 'conflict'` → `conflict`;
   *    - DONE, DEAD → `done`; live lease → `in-flight`; inbox → acknowledge it, `in-flight`;
   *    - QUEUED or lease over (a crash: counted, but for the caller's own, of which it was not told): attempts or crashes used up → DEAD, `done`; its task held by
   *      another record's live lease → `task-busy`; the first copy older than its task's mark (as in 3) →
   *      DONE(stale), `stale`; else leased to `acceptId`, `run` + 1 → `won` with the stored first copy. `attempts` + 1
   *      where it is 0, or `notBefore` is over and the nonce is fresh. A suspect (admission.md §4.6) is leased to who asks
   *      `alone`; once it was charged, not before its wait is over: `backing-off`;
   *    - before all that: the nonce known (another `acceptId`, or `replay`) and `notBefore` not over → `backing-off`,
   *      nothing written.
   * 3. older than its task's mark, or equal to a terminal mark and not terminal → `stale`: recorded DONE(stale)
   *    where the caps leave room, unrecorded else; the nonce is bound to the key.
   *    Of a task that has another terminal status already, where the request has `terminalHash`: not safe →
   *    `final-unsafe`, another hash → `already-final`, nothing written, the nonce neither; the same, and nothing applied to
   *    the task since → `done`, recorded DONE(stale) as above; else as if there were none.
   * 4. no room for one more record, or for its body → `over-cap`, nothing written, the nonce neither. What a record
   *    brings with it (its task, its notification id, the media buys of a final report) is counted too, and may
   *    exceed the cap by that much.
   * 5. insert record, nonce, notification id; inbox → acknowledged, `queued`; inline: task held by another record
   *    → QUEUED, `task-busy`; else LEASED → `won`.
   *
   * Expired rows count as absent. Expiry: DONE at completion + `retentionMs`; a record never acknowledged at its
   * last attempt + `retentionMs`; acknowledged unfinished ones and DEAD never.
   */
  accept(request: AcceptRequest): Promise<AcceptResult>;
  /**
   * Ends a lease with success: LEASED → DONE(applied). It deletes the body, moves the task's mark and releases the
   * task.
   */
  complete(request: CompleteRequest): Promise<CompleteResult>;
  /**
   * Ends a lease with a failure: LEASED → QUEUED, or DEAD if `permanent` or no attempts are left. It releases the
   * task. `unstarted`: always QUEUED.
   *
   * `notBefore` stays if it is not over and the lease raised no attempt; otherwise it becomes now + `backoffMs`.
   */
  fail(request: FailRequest): Promise<FailResult>;
  /**
   * Prolongs a lease to now + `leaseMs`, even if it has expired, unless another owner took the record or its task.
   * With another owner nothing changes and the answer is `lost`, as for `complete`, `fail` and `transaction`.
   */
  renew(request: RenewRequest): Promise<'renewed' | 'lost'>;
  /**
   * Keeps the row of a process alive for `forMs` from now on the store's clock. An expired lease is a crash only if
   * the row of its process has expired too. Optional: without it every expired lease is a crash.
   */
  alive?(request: AliveRequest): Promise<void>;
  /** Returns the progress of an event, for deliveries that wait for another one's handler. */
  peek(sender: string, key: string): Promise<PeekResult>;
  /**
   * Runs `fn` and the completion in one transaction of the database: both commit or neither. Absent if the database
   * has no transactions.
   *
   * It rejects with the error of `fn`, or with `Fault('lease_lost')` if `owner` does not hold the lease. It rejects
   * with ConfigError if the database is synchronous and `fn` returned a promise. In each case nothing is written.
   * @param over aborts when the run is over, because its lease is lost or the receiver has stopped. A store that
   *   waits for `fn` then rejects with its reason, writes nothing, and keeps nothing for an `fn` that continues.
   */
  transaction?<T>(
    request: TransactionRequest,
    fn: (tx: Tx) => T | Promise<T>,
    over?: AbortSignal,
  ): Promise<T>;
  /**
   * Returns the store's own clock, with `clockOffsetMs`, Unix ms. If deliveries are outside their time window, a
   * receiver uses it to check its own clock. Absent if the store uses the receiver's clock.
   */
  clock?(): Promise<number>;
  /** The operations of workers and operators. Absent in a store for inline mode only. */
  readonly inbox?: StoreInbox;
  /** The rows of registrations. Absent in a store that keeps none. */
  readonly registrations?: StoreRegistrations;
  /**
   * Waits for running operations and releases the database. A pool, handle or client that was passed in stays open.
   * Idempotent. Until `open` is called again, calls reject with `store_unavailable`.
   */
  close(): Promise<void>;
  /** `close`, for `await using`; absent in a store that is written without it. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** The identity of a store. */
export interface StoreIdentity {
  readonly id: string;
  /**
   * True if the identity was just made, and only for the first caller. It is never true for a store that is lost
   * with its process.
   */
  readonly isNew: boolean;
}

/**
 * The event that data survive, from weakest to strongest: `process`, the end of the process; `disk`, a power
 * failure; `failover`, the loss of the machine.
 */
export type Durability = 'process' | 'disk' | 'failover';

/** Ends a lease with success. */
export interface CompleteRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly retentionMs: number;
}

/** Ends a lease with success, together with the writes of a function. */
export interface TransactionRequest extends CompleteRequest {
  /**
   * The duration of the lease without renewal, ms. It determines how long a function may leave its transaction
   * idle.
   */
  readonly leaseMs?: number;
  /** Called for each use of `tx` after the end of the transaction, if the store refuses it. */
  readonly onLateUse?: (error: Error) => void;
}

/**
 * The result of `complete`. `lost`: the record or its task went to another owner, and nothing changed. If its owner
 * repeats the call, the answer is `done` again.
 */
export type CompleteResult = 'done' | 'lost';

/** Returns a lease after a failed run. */
export interface FailRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** True for a `PermanentError`: the record becomes DEAD at once. */
  readonly permanent: boolean;
  readonly retry: RetryLimits;
  /**
   * The time for which workers do not take the record, ms. A retry of the sender does not wait for it. It must be
   * from 0 to 1 h, otherwise ConfigError.
   */
  readonly backoffMs: number;
  /**
   * True if the worker stops and the handler was not called, or threw because of the stop. The record becomes
   * QUEUED whatever `retry` says, and a counted attempt of the lease is taken back.
   */
  readonly unstarted?: boolean;
  /**
   * True if the handler ran longer than `maxRunMs` and was abandoned. It counts as a crash, which is not taken
   * back. The record becomes DEAD if no crashes or attempts are left.
   */
  readonly overrun?: boolean;
  /** The error for `inspect`, at most 1 000 characters. It is never sent to a seller. */
  readonly error?: string;
  readonly retentionMs: number;
}

/** The result of `fail`. `lost`: the record or its task went to another owner, and nothing changed. */
export type FailResult = 'queued' | 'dead' | 'lost';

/** Prolongs a lease. */
export interface RenewRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** The duration from now, ms. It must be above 0 and at most 10 min, otherwise ConfigError. */
  readonly leaseMs: number;
}

/** Keeps the row of a process alive. */
export interface AliveRequest {
  /** The random id of the process, as in `AcceptRequest` and `LeaseDueRequest`. */
  readonly process: string;
  /** The duration from now, ms. It must be finite and above 0, otherwise ConfigError. */
  readonly forMs: number;
}

/**
 * The progress of an event. `absent`: no record. `free`: QUEUED or an expired lease, with its task free, so an
 * accept can lease it. `busy`: a live lease, or its task is held. Otherwise the way in which it ended.
 */
export type PeekResult = 'absent' | 'free' | 'busy' | 'applied' | 'stale' | 'dead';

/** Options that every store takes. */
export interface StoreOptions {
  /**
   * Returns the offset that is added to the store's own time in every operation, ms. It moves time in tests.
   * Default: 0.
   */
  readonly clockOffsetMs?: () => number;
}
