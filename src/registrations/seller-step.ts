// Defines a step: changes of the rows of one seller, in one atomic call of the store. Settling, the accounts of reports
// and the poller's schedule use it.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRows } from '../stores/store.ts';

/** The context of one atomic change of a seller's rows. */
export interface SellerStep {
  readonly rows: RegistrationRows;
  /** The store's current time, Unix ms. */
  readonly now: number;
  readonly hashes: Hashes;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
}
