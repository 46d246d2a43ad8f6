import type { Store } from '../../stores/contract.ts';

/** What a store's author gives the suite: two handles open on one store, and a hand on its clock. */
export interface StoreHarness {
  /** As two processes have it: two connections, two stores over one backend. The suite calls `open()` on both. */
  readonly a: Store;
  readonly b: Store;
  /** What both stores' `clockOffsetMs` gives from now on. Starts at 0. */
  readonly setClockOffsetMs: (ms: number) => void;
  /** Closes and removes everything. Called once, after the test. */
  readonly cleanup: () => Promise<void>;
  /** A third handle on the same store, after `a` and `b` were closed; for persistent stores. */
  readonly reopen?: () => Promise<Store>;
  /** For stores that have `transaction`. */
  readonly effects?: StoreEffects;
}

/** A place beside the store's own rows that only its transactions can write together with them. */
export interface StoreEffects {
  /** Whether `fn` must not be async. */
  readonly synchronous: boolean;
  /** Writes one row through the `tx` that `fn` was given. */
  readonly write: (tx: unknown) => unknown;
  /** Rows that are committed. */
  readonly count: () => Promise<number>;
}

/** A new, empty store for each test. */
export type StoreFactory = () => Promise<StoreHarness>;

/** Where the tests go (vitest, jest and `node:test` all fit), and what the store claims beyond the ordinary. */
export interface StoreContractOptions {
  /** It has `transaction`: each harness brings `effects`. false by default, and then it must have none. */
  readonly transactions?: boolean;
  /** It outlives its handles: each harness brings `reopen`. false by default. */
  readonly persistent?: boolean;
  /** It has `inbox`, for mode `inbox`. false by default, and then it must have none. */
  readonly inbox?: boolean;
  /** It has `registrations`. false by default, and then it must have none. */
  readonly registrations?: boolean;
  /** The test runner's. */
  readonly describe: (name: string, body: () => void) => unknown;
  /** The test runner's. */
  readonly it: (name: string, body: () => Promise<void>) => unknown;
}
