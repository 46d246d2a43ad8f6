import type { StoreInbox } from './store-inbox.ts';
import type { AcceptRequest, AcceptResult, RetryLimits } from './store-accept.ts';
import type { StoreRegistrations } from './store-registrations.ts';

export type * from './store-accept.ts';
export type * from './store-inbox.ts';
export type * from './store-registrations.ts';

/**
 * What every store does, whatever it is built on. One record per `(sender, idempotency key)`; `sender` is the
 * seller's agent URL, never a key id, so that a record survives key rotation.
 *
 *     ∅ ─ accept ─► QUEUED ─ lease ─► LEASED(owner, until) ─ complete(owner) ─► DONE(applied | stale)
 *                     ▲                 │        │ until passed: anyone may lease, new owner
 *                     └─── fail(owner) ─┘        └─ attempts or crashes used up, or permanent ─► DEAD
 *
 * Rules for every method:
 * - one atomic operation, on the store's own clock plus `clockOffsetMs()`;
 * - it resolves only once what it answers is as durable as `durability()` says, reads included: every 2xx and
 *   every `replayed` that a receiver sends rests on one of these answers;
 * - where it cannot decide it rejects with `Fault('store_unavailable' | 'not_durable')`, and the same call may be
 *   made again: `accept` by its `acceptId`, `complete`/`fail`/`renew` by their owner are idempotent.
 */
export interface Store<Tx = unknown> {
  /** e.g. `memory`, `sqlite`: for logs. */
  readonly name: string;
  /**
   * Opens, creates or checks the schema, reads the settings back. Idempotent. After `close` it opens again, with the rows that
   * were there: `receiver.start()` does so. @throws ConfigError with the fix.
   */
  open(): Promise<void>;
  /** What an answered operation survives, read from the backend's real settings (`unknown` where they cannot be read). Call after `open`. */
  durability(): Promise<Durability | 'unknown'>;
  /**
   * Which store this is, made with it: an empty one in the place of a full one has another. Call after `open`. Absent:
   * nobody is told of a store that was made anew.
   */
  identity?(): Promise<StoreIdentity>;
  /**
   * What the answers of a receiver have to survive, said once `durability()`, or `durability.declared`, was found to do:
   * from then on an operation that rests on less rejects with `Fault('not_durable')`; `lowered` is told where one rests
   * on what is required and yet on less than `durability()` said last. Of several receivers the strongest requirement
   * counts. Absent: `durability()` is all that is looked at.
   */
  keepDurability?(required: Durability, lowered: (message: string) => void): void;
  /**
   * Told where an open store is found to be another one than it was: emptied (Redis `FLUSHALL`), or another one in its
   * place. What it throws, operations reject with as `Fault('misconfigured')`, until the store is the one that it was.
   * Looked at every 10 s at most, as the store is used. Absent: `identity()` is all that is looked at.
   */
  watchIdentity?(changed: (identity: StoreIdentity) => void): void;
  /** For the owner whose `durability()` is too weak: the settings of the backend to change. One sentence. */
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
  /** LEASED → DONE(applied): drops the body, moves the task's mark, frees the task. */
  complete(request: CompleteRequest): Promise<CompleteResult>;
  /**
   * LEASED → QUEUED, or DEAD where `permanent` or attempts are used up; frees the task. `unstarted`: always QUEUED.
   * `notBefore` stays where it is not over and the lease raised no attempt, else it is now + `backoffMs`.
   */
  fail(request: FailRequest): Promise<FailResult>;
  /**
   * Moves `until` to now + `leaseMs`, also where the lease has run out and nobody has taken the record or its task over. With
   * another owner it stays as it is: `lost`. So do `complete`, `fail` and `transaction`.
   */
  renew(request: RenewRequest): Promise<'renewed' | 'lost'>;
  /**
   * Keeps the row of a process alive for `forMs` from now on the store's clock. A lease that runs out is a crash only where
   * the row of the process that held it is over too. Optional for stores of other makers: absent, every lease that runs
   * out is a crash.
   */
  alive?(request: AliveRequest): Promise<void>;
  /** How far an event is, for deliveries that wait for another one's handler. */
  peek(sender: string, key: string): Promise<PeekResult>;
  /**
   * Runs `fn` and the completion in one transaction of the backend: both commit or neither. Absent where the
   * backend has none. Rejects with `Fault('lease_lost')`, nothing written, where `owner` does not hold the lease;
   * with what `fn` threw, rolled back; with ConfigError where the backend is synchronous and `fn` gave a promise.
   * @param over aborts when the run is over (its lease is gone, the receiver has stopped): a store that waits for `fn`
   *   rejects with its reason, nothing written, and keeps nothing for an `fn` that goes on.
   */
  transaction?<T>(
    request: TransactionRequest,
    fn: (tx: Tx) => T | Promise<T>,
    over?: AbortSignal,
  ): Promise<T>;
  /**
   * The store's own clock now, with `clockOffsetMs`. Unix ms. A receiver whose deliveries are outside their window asks
   * whether it is its own clock that is wrong (verification.md §2.35). For a store on another machine; absent where it is
   * the receiver's own clock anyway.
   */
  clock?(): Promise<number>;
  /** Workers and operators; absent in a store for inline mode alone. */
  readonly inbox?: StoreInbox;
  /** What is kept of registrations; absent in a store that keeps none. */
  readonly registrations?: StoreRegistrations;
  /**
   * Waits for running operations, releases the backend; what was handed in (a pool, a handle, a client) stays its owner's.
   * Idempotent. Until `open` is called again, calls reject with `store_unavailable`.
   */
  close(): Promise<void>;
  /** `close`, for `await using`; absent in a store that is written without it. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** What `Store.identity` says. */
export interface StoreIdentity {
  readonly id: string;
  /** It was made, and this is the first that asks: said once. Never of one that is gone with its process anyway. */
  readonly isNew: boolean;
}

/** From weakest to strongest: the end of the process, of the machine's power, of the machine. */
export type Durability = 'process' | 'disk' | 'failover';

/** Ends a lease well. */
export interface CompleteRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly retentionMs: number;
}

/** Ends a lease with the writes of a function. */
export interface TransactionRequest extends CompleteRequest {
  /** How long the lease holds without renewal. Ms. For how long a function may leave its transaction idle. */
  readonly leaseMs?: number;
  /** Told of each use of `tx` that came after the transaction's end, where the store refuses it. */
  readonly onLateUse?: (error: Error) => void;
}

/** `lost`: the record or its task went to another owner; nothing changed. Repeated by its owner: `done` again. */
export type CompleteResult = 'done' | 'lost';

/** Gives a lease back. */
export interface FailRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** `PermanentError`: DEAD at once. */
  readonly permanent: boolean;
  readonly retry: RetryLimits;
  /** How long workers leave the record alone; a sender's retry does not wait. From 0 to 1 h, else ConfigError. Ms. */
  readonly backoffMs: number;
  /**
   * The worker stops, and the handler was never called or threw because it was told so: QUEUED whatever `retry` says,
   * and the lease's attempt is taken back, where it was counted.
   */
  readonly unstarted?: boolean;
  /**
   * The handler ran longer than `maxRunMs` and was left: charged as a crash, which is not taken back. DEAD where crashes or
   * attempts are used up.
   */
  readonly overrun?: boolean;
  /** For `inspect`: what went wrong, at most 1 000 characters. Never leaves the owner's side. */
  readonly error?: string;
  readonly retentionMs: number;
}

/** `lost`: the record or its task went to another owner; nothing changed. */
export type FailResult = 'queued' | 'dead' | 'lost';

/** Prolongs a lease. */
export interface RenewRequest {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  /** Over 0 and 10 min at most, else ConfigError. Ms. */
  readonly leaseMs: number;
}

/** Keeps a process's row alive. */
export interface AliveRequest {
  /** Random per process; as in `AcceptRequest` and `LeaseDueRequest`. */
  readonly process: string;
  /** Finite and over 0, else ConfigError. Ms. */
  readonly forMs: number;
}

/**
 * `absent`: no record. `free`: QUEUED or its lease is over, and its task is free: an accept can lease it.
 * `busy`: a live lease on it, or its task is held. Else how it ended.
 */
export type PeekResult = 'absent' | 'free' | 'busy' | 'applied' | 'stale' | 'dead';

/** Options that every store takes. */
export interface StoreOptions {
  /** Added to the store's own time in every operation. Ms; 0 by default. For tests that move time. */
  readonly clockOffsetMs?: () => number;
}
