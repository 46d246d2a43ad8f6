// Defines a step: changes of the rows of one seller, in one atomic call of the store. Settling, streams and the
// poller's schedule take it.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRows } from '../stores/store.ts';

/** A step over the rows of a seller. */
export interface SellerStep {
  readonly rows: RegistrationRows;
  /** The store's clock, Unix ms. */
  readonly now: number;
  readonly hashes: Hashes;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
}
