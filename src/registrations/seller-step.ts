// Defines a step: one store transaction on the rows of one seller. Settling, streams (the records of reports) and the
// poller's schedule use it.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRows } from '../stores/store.ts';

/** The context of one store transaction on the rows of one seller. */
export interface SellerStep {
  readonly rows: RegistrationRows;
  /** The store's current time, Unix ms. */
  readonly now: number;
  readonly hashes: Hashes;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
}
