import type { Store } from '../../stores/contract.ts';

/** What a store's author gives the suite: two handles open on one store, and a hand on its clock. */
export interface StoreHarness {
  /** As two processes have it: two connections, two stores over one backend. The suite calls `open()` on both. */
  readonly a: Store;
  readonly b: Store;
  /** What both stores' `clockOffsetMs` gives from now on. Starts at 0. */
  setClockOffsetMs(ms: number): void;
  /** Closes and removes everything. Called once, after the test. */
  cleanup(): Promise<void>;
  /** A third handle on the same store, after `a` and `b` were closed; absent where nothing survives that. */
  reopen?(): Promise<Store>;
  /** Present where the store has `transaction`. */
  readonly effects?: StoreEffects;
}

/** A place beside the store's own rows that only its transactions can write together with them. */
export interface StoreEffects {
  /** Whether `fn` must not be async. */
  readonly synchronous: boolean;
  /** Writes one row through the `tx` that `fn` was given. */
  write(tx: unknown): unknown;
  /** Rows that are committed. */
  count(): Promise<number>;
}

/** A new, empty store for each test. */
export type StoreFactory = () => Promise<StoreHarness>;

/** Where the tests go: vitest, jest and `node:test` all fit. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}
