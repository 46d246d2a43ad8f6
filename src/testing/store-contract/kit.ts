// The harness of the store contract and its shorthand: a store with two handles, under a clock that the suite moves.
// Called by `describeStoreContract`; users write a `StoreFactory` for it.
import assert from 'node:assert/strict';
import type {
  AcceptDecision,
  AcceptRequest,
  AcceptResult,
  CompleteResult,
  FailResult,
  PeekResult,
  Store,
} from '../../stores/store.ts';
import {
  type Clock,
  type Draft,
  type FailDraft,
  DAY_MS,
  KEY,
  LEASE_MS,
  SENDER,
  failOf,
  requestOf,
} from './drafts.ts';

/**
 * The store under test, as your factory returns it to `describeStoreContract`: two handles on one store, and control
 * of its clock.
 */
export interface StoreHarness {
  /**
   * The first of two handles on one store, as two processes have them: separate connections, one backend. The suite
   * calls `open()` on both.
   */
  readonly a: Store;
  /** The second handle on the same store. The suite calls `open()` on it too. */
  readonly b: Store;
  /** Sets the `clockOffsetMs` of both stores from now on. It begins at 0. */
  readonly setClockOffsetMs: (ms: number) => void;
  /** Closes the store and removes its data. Called once, after the test. */
  readonly cleanup: () => Promise<void>;
  /** Opens a third handle on the same store, after `a` and `b` were closed. Only for persistent stores. */
  readonly reopen?: () => Promise<Store>;
  /** A table that the store's transactions can write to. Only for stores with `transaction`. */
  readonly effects?: StoreEffects;
}

/**
 * A table of yours beside the store's own, for `describeStoreContract`. The suite writes to it inside
 * `Store.transaction`, to test that your table and the store's commit together.
 */
export interface StoreEffects {
  /** True if the function of a transaction must not be async. */
  readonly synchronous: boolean;
  /** Writes one row, through the `tx` that the function of a transaction gets. */
  readonly write: (tx: unknown) => unknown;
  /** Returns the number of committed rows. */
  readonly count: () => Promise<number>;
}

/** The function that `describeStoreContract` calls before each test. It creates a new, empty store. */
export type StoreFactory = () => Promise<StoreHarness>;

/**
 * Options of `describeStoreContract`: the test runner's functions (vitest, jest or `node:test`), and the optional
 * features of your store.
 */
export interface StoreContractOptions {
  /**
   * True if the store has `transaction`; each harness then provides `effects`. Default: false, and the store must
   * have none.
   */
  readonly transactions?: boolean;
  /** True if the store's data outlive its handles; each harness then provides `reopen`. Default: false. */
  readonly persistent?: boolean;
  /** True if the store has `inbox`, for mode `inbox`. Default: false, and the store must have none. */
  readonly inbox?: boolean;
  /** True if the store has `registrations`. Default: false, and the store must have none. */
  readonly registrations?: boolean;
  /** The test runner's `describe`. */
  readonly describe: (name: string, body: () => void) => unknown;
  /** The test runner's `it`. */
  readonly it: (name: string, body: () => Promise<void>) => unknown;
}

export type { Draft } from './drafts.ts';
export { DAY_MS, HOUR_MS, KEY, LEASE_MS, RETRY, SENDER, bytes, text } from './drafts.ts';

export type Won = Extract<AcceptDecision, { kind: 'won' }>;

/** Numbers that are no valid length of a lease. */
export const NO_LENGTHS: readonly number[] = [Number.NaN, -1, 0, Infinity, -Infinity];

/** Matches the error for a wrong argument, for `assert.rejects`. */
export const CONFIG_ERROR = { code: 'config_error' } as const;

/** The store of one case, and shorthand for calls of it. */
export interface Kit {
  readonly a: Store;
  readonly b: Store;
  readonly effects: StoreEffects | undefined;
  readonly reopen: () => Promise<Store>;
  readonly request: (draft?: Draft) => AcceptRequest;
  /** Calls `accept` on handle `a`, unless another handle is given. */
  readonly accept: (draft?: Draft, store?: Store) => Promise<AcceptResult>;
  /** Calls `accept`, and asserts that the result is `won`. */
  readonly win: (draft?: Draft, store?: Store) => Promise<Won>;
  readonly complete: (owner: string, of?: Draft, store?: Store) => Promise<CompleteResult>;
  readonly fail: (owner: string, of?: FailDraft, store?: Store) => Promise<FailResult>;
  readonly renew: (owner: string, of?: Draft, store?: Store) => Promise<'renewed' | 'lost'>;
  readonly peek: (of?: Draft, store?: Store) => Promise<PeekResult>;
  /** Calls `accept`, asserts that the result is `won`, and completes the event. */
  readonly apply: (draft?: Draft) => Promise<Won>;
  /** Moves the store's clock forward. */
  readonly advance: (ms: number) => void;
  /** Returns the instant that is `ms` after the store's current time, RFC 3339. */
  readonly fromNow: (ms: number) => string;
  readonly unique: () => string;
}

/** Cases by their names. The name of a case states the rule that the case checks. */
export type Cases = Readonly<Record<string, (kit: Kit) => Promise<void>>>;

export async function withKit(factory: StoreFactory, run: (kit: Kit) => Promise<void>): Promise<void> {
  const harness = await factory();
  try {
    await harness.a.open();
    await harness.b.open();
    let offsetMs = 0;
    let last = 0;
    const clock: Clock = {
      now: () => Date.now() + offsetMs,
      advance: (ms) => {
        offsetMs += ms;
        harness.setClockOffsetMs(offsetMs);
      },
      unique: () => `unique-${(last += 1)}-${'0'.repeat(16)}`,
    };
    await run({ ...actions(harness.a, clock), ...handles(harness, clock) });
  } finally {
    await harness.cleanup();
  }
}

type Handles = Pick<Kit, 'a' | 'b' | 'effects' | 'reopen' | 'advance' | 'fromNow' | 'unique'>;

function handles(harness: Awaited<ReturnType<StoreFactory>>, clock: Clock): Handles {
  return {
    a: harness.a,
    b: harness.b,
    effects: harness.effects,
    reopen: () => {
      assert.ok(harness.reopen, 'a persistent store’s harness has reopen');
      return harness.reopen();
    },
    advance: clock.advance,
    fromNow: (ms) => new Date(clock.now() + ms).toISOString(),
    unique: clock.unique,
  };
}

function actions(a: Store, clock: Clock): Omit<Kit, keyof Handles> {
  const request = (draft: Draft = {}): AcceptRequest => requestOf(draft, clock);
  const accept: Kit['accept'] = (draft, store = a) => store.accept(request(draft));
  const of = (draft: Draft = {}): { sender: string; key: string } => ({
    sender: draft.sender ?? SENDER,
    key: draft.key ?? KEY,
  });
  const win: Kit['win'] = async (draft, store) => expectWon(await accept(draft, store));
  const complete: Kit['complete'] = (owner, draft, store = a) =>
    store.complete({ ...of(draft), owner, retentionMs: draft?.retentionMs ?? DAY_MS });
  return {
    request,
    accept,
    win,
    complete,
    fail: (owner, draft = {}, store = a) => store.fail(failOf(owner, draft, of(draft))),
    renew: (owner, draft = {}, store = a) =>
      store.renew({ ...of(draft), owner, leaseMs: draft.leaseMs ?? LEASE_MS }),
    peek: (draft, store = a) => store.peek(of(draft).sender, of(draft).key),
    apply: async (draft) => {
      const won = await win(draft);
      assert.equal(await complete(won.lease.owner, draft), 'done');
      return won;
    },
  };
}

/** Returns the result of an accept that won. @throws AssertionError if the accept did not win. */
export function expectWon(result: AcceptResult): Won {
  assert.ok(result.kind === 'won', `won, not ${result.kind}`);
  return result;
}

/** Returns the result of `accept` without `pressure`, `secondEnd` and `endDropped`, which most cases are not about. */
export function decision(result: AcceptResult): AcceptDecision {
  const { pressure: _pressure, secondEnd: _second, endDropped: _dropped, ...rest } = result;
  return rest;
}
