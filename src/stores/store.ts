// The contract of a store: one record per `(sender, idempotency key)`, and the operations on records (admission.md §1
// to §7).
// Called by the stages, the receiver and workers; every store implements it. Types only.
import type { StoreInbox } from './store-inbox.ts';
import type { AcceptRequest, AcceptResult, RetryLimits } from './store-accept.ts';
import type { StoreRegistrations } from './store-registrations.ts';

export type * from './store-accept.ts';
export type * from './store-inbox.ts';
export type * from './store-registrations.ts';
export type * from './store-accounts.ts';

/**
 * Keeps every event until its handler has succeeded, and lets only one caller at a time run an event.
 * `createReceiver` takes a store as its option `store`. This package has stores for several databases, e.g.
 * `postgresStore`; `storeOf` makes a store for another database.
 *
 * A store keeps one record per `(sender, idempotency key)`. `sender` is the seller's agent URL, never a key id, so
 * that a record survives key rotation.
 *
 * ```text
 * ∅ ─ accept ─► QUEUED ─ lease ─► LEASED(owner, until) ─ complete(owner) ─► DONE(applied | stale)
 *                 ▲                 │        │ until passed: anyone may lease, new owner
 *                 └─── fail(owner) ─┘        └─ attempts or crashes used up, or permanent ─► DEAD
 * ```
 *
 * Words that the members use:
 *
 * - A *lease* is the right of one *owner* to run an event's handler until a time. The owner is the `acceptId` of a
 *   delivery, or the `owner` of a worker's request.
 * - An event is *acknowledged* when the seller was or may be answered 2xx. In mode `inbox` an event is acknowledged
 *   once it is stored, in mode `inline` once it is DONE or DEAD. From then on it does not expire before it is handled.
 * - The *mark* of a task is the time of its newest status that was applied. An event with an older status is *stale*:
 *   it ends as DONE without a run.
 * - A lease *holds* its event's task, so that handlers of one task never overlap.
 * - A *crash* is a lease that expired together with its process (`alive`). The event is then a *suspect*, because it
 *   may have ended the process. A suspect runs alone in its process, so a second crash is charged to it and to no
 *   other.
 *
 * Rules for every method:
 *
 * - It is one atomic operation, on the store's own clock plus `clockOffsetMs()`.
 * - It resolves only when its answer is as durable as `durability()` says, reads included. Every 2xx and every
 *   `replayed` of a receiver depends on one of these answers.
 * - If it cannot decide, it rejects with `Fault('store_unavailable' | 'not_durable')`, and the same call may be made
 *   again. `accept` is idempotent by its `acceptId`, and `complete`, `fail` and `renew` by their owner.
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
   * Sets the durability that a receiver's answers require. A receiver calls it once, after `durability()` or its option
   * `durability.declared` was found sufficient. From then on, an operation that is less durable rejects with
   * `Fault('not_durable')`.
   *
   * `lowered` is called if an operation meets the requirement, but is less durable than `durability()` last returned.
   * With several receivers the strongest requirement applies. Absent: only `durability()` is checked.
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
   * Decides one delivery, and records the decision in the same atomic step. The first of these rules that applies
   * gives the answer (`AcceptDecision`).
   *
   * 1. The nonce.
   *    - It is known with this `acceptId`: this is the same accept, so continue with rule 2.
   *    - It was used for no event, for another event, or for this one, which is acknowledged or gone: `replayed`.
   *    - It was used for this event, which is not acknowledged: continue with rule 2.
   *    - It is new, and a limit of nonces is reached: `rate-abuse`.
   *    - It is new, and the request has no event: it is stored without one, `burned`.
   * 2. The event is known. A new nonce is stored with it in each case, and limits of records do not apply.
   *    - This `acceptId` inserted, leased or ended it: the same answer as then. `in-flight` and `task-busy` are
   *      decided anew, so that a waiting delivery can take over without its own nonce being `replayed`. So is a
   *      lease that expired, was returned or went to another owner, because no handler may start on it.
   *    - The payload differs and `onChanged` is `conflict`: `conflict`.
   *    - It is DONE or DEAD: `done`.
   *    - Mode `inbox`: it is acknowledged, `in-flight`.
   *    - Its lease is live, or `isRunning`: `in-flight`.
   *    - The nonce was known (or `replay`), and the event's back-off (`FailRequest.backoffMs`) is not over:
   *      `backing-off`, and nothing is written.
   *    - Its lease expired with its process: the crash is counted, unless the lease was this caller's own.
   *    - No attempts or crashes are left: it becomes DEAD, `done`.
   *    - Another event holds its task: `task-busy`.
   *    - Its first copy is older than the task's mark: it becomes DONE(stale), `stale`.
   *    - It is a suspect: `backing-off` until the wait after its last charged crash is over. Without `alone` the
   *      answer is `in-flight` with `suspect`.
   *    - Otherwise it is leased to `acceptId`, `won`, with the stored first copy. `run` rises by 1.
   *      `chargedAttempts` rises by 1 if it is 0, or if the back-off is over and the nonce is new.
   * 3. The event is new, and its task has a later status.
   *    - It is older than the task's mark, or equal to a terminal one and not terminal itself: `stale`. It is
   *      stored as DONE(stale) if the limits of records allow, otherwise only its nonce is.
   *    - The request has `terminalHash`, and the task has another terminal status. If that one is not
   *      acknowledged: `final-unsafe`. If its hash differs: `already-final`. In both cases nothing is written, not
   *      even the nonce. If its hash is the same and nothing was applied since: `done`, stored as DONE(stale).
   * 4. The limits leave no room for the record or its body: `over-cap`, and nothing is written. Rows that come with
   *    a record count too, and may exceed the limit: its task, its notification id, the media buys of a final report.
   * 5. Otherwise record, nonce and notification id are stored. Mode `inbox`: acknowledged, `queued`. Mode `inline`:
   *    `task-busy` if another event holds the task, and the record is QUEUED; else leased, `won`.
   *
   * Expired records count as absent. A DONE record expires `retentionMs` after its end. A record that was never
   * acknowledged expires `retentionMs` after its last attempt. Unfinished acknowledged records and DEAD ones never
   * expire.
   */
  accept(request: AcceptRequest): Promise<AcceptResult>;
  /**
   * Ends a lease with success: LEASED → DONE(applied). It deletes the body, updates the mark (the newest applied time)
   * of the task and releases the task.
   */
  complete(request: CompleteRequest): Promise<CompleteResult>;
  /**
   * Ends a lease with a failure: LEASED → QUEUED, or DEAD if `permanent` or no attempts are left. It releases the task.
   * `unstarted`: always QUEUED.
   *
   * `notBefore` (the end of the back-off) stays if it is still ahead and the lease counted no attempt. Otherwise it
   * becomes now + `backoffMs`.
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
  /** Does the same as `close`, for `await using`. Absent in a store that was written without it. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/**
 * The identity of a store's data, as `Store.identity` returns it: an id that is created together with the data. If a
 * restart finds another id, the database was emptied or replaced, and the store remembers none of the former events.
 */
export interface StoreIdentity {
  readonly id: string;
  /**
   * True if the identity was just made, and only for the first caller. It is never true for a store that is lost
   * with its process.
   */
  readonly isNew: boolean;
}

/**
 * The worst failure that stored data survive, from weakest to strongest, as `Store.durability` and
 * `DurabilityOptions` name it. `process`: the end of the process. `disk`: a power failure. `failover`: the loss of
 * the machine.
 */
export type Durability = 'process' | 'disk' | 'failover';

/**
 * Reports to `Store.complete` that the handler of an event succeeded. `sender` and `key` name the event, `owner`
 * holds its lease (`Lease`). The finished event is remembered for `retentionMs`, ms.
 */
export interface CompleteRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly retentionMs: number;
}

/**
 * Names the event that `Store.transaction` completes together with the writes of a function, in one database
 * transaction. The members are those of `CompleteRequest`, with the duration of the lease.
 */
export interface TransactionRequest extends CompleteRequest {
  /**
   * The duration of the lease without renewal, ms. It determines how long a function may leave its transaction
   * idle.
   */
  readonly leaseMs?: number;
  /** Called with the error of each use of `tx` after the end of the transaction, by stores that refuse such a use. */
  readonly onLateUse?: (error: Error) => void;
}

/**
 * The result of `Store.complete`. `done`: the success is recorded; the same owner gets it again if it repeats the
 * call. `lost`: another owner has leased the event or its task meanwhile, and nothing was recorded.
 */
export type CompleteResult = 'done' | 'lost';

/**
 * Reports to `Store.fail` that a run of an event failed, so that it runs again later or is given up. `sender` and
 * `key` name the event, `owner` holds its lease (`Lease`).
 */
export interface FailRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** True for a `PermanentError`: the record becomes DEAD immediately. */
  readonly permanent: boolean;
  /** The limits of attempts and crashes after which the record becomes DEAD. */
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
   * True if the handler ran longer than `maxRunMs` and was abandoned. The run counts as one attempt and one crash. If
   * either limit of `retry` is then reached, the record becomes DEAD.
   */
  readonly overrun?: boolean;
  /** The text of the error, which `inspect` shows, at most 1 000 characters. It is never sent to a seller. */
  readonly error?: string;
  readonly retentionMs: number;
}

/**
 * The result of `Store.fail`. `queued`: the event runs again later. `dead`: no run is left, and the event is kept
 * for an operator. `lost`: another owner has leased the event or its task meanwhile, and nothing was recorded.
 */
export type FailResult = 'queued' | 'dead' | 'lost';

/**
 * Asks `Store.renew` to prolong the lease (`Lease`) of an event whose handler still runs. `sender` and `key` name
 * the event, `owner` holds the lease.
 */
export interface RenewRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** The duration from now, ms. It must be above 0 and at most 10 min, otherwise ConfigError. */
  readonly leaseMs: number;
}

/**
 * The heartbeat of a process, for `Store.alive`. If a lease of the process expires before `forMs` has passed, that
 * does not count as a crash.
 */
export interface AliveRequest {
  /** The random id of the process, as in `AcceptRequest` and `LeaseDueRequest`. */
  readonly process: string;
  /** The duration from now, ms. It must be finite and above 0, otherwise ConfigError. */
  readonly forMs: number;
}

/**
 * The progress of an event, as `Store.peek` returns it to a delivery that waits for another one of the same event.
 *
 * - `absent`: the event is unknown.
 * - `free`: nobody runs it or another event of its task, so that a delivery can run it.
 * - `busy`: it is running, or another event of its task is.
 * - `applied`: its handler succeeded.
 * - `stale`: it ended without a run, because its task has a newer status or an operator discarded it.
 * - `dead`: its runs failed, and it is kept for an operator.
 */
export type PeekResult = 'absent' | 'free' | 'busy' | 'applied' | 'stale' | 'dead';

/** The option that every store of this package takes: an offset for its clock, with which tests move time. */
export interface StoreOptions {
  /**
   * Returns the offset that is added to the store's own time in every operation, ms. It moves time in tests.
   * Default: 0.
   */
  readonly clockOffsetMs?: () => number;
}
