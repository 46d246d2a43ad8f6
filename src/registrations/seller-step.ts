import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRows } from '../stores/store.ts';

/** One step over the rows of a seller. */
export interface SellerStep {
  readonly rows: RegistrationRows;
  /** The store's clock, Unix ms. */
  readonly now: number;
  readonly hashes: Hashes;
  /** The time for which an operation is known after its end. Ms. */
  readonly retentionMs: number;
}
