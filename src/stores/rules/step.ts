import type { AcceptRequest } from '../contract.ts';
import type { Rows, Usage } from './rows.ts';

/** One accept as it runs: `now` is the store's clock, read once inside the atomic step. Unix ms. */
export interface Step {
  readonly rows: Rows;
  readonly request: AcceptRequest;
  readonly now: number;
  /** What the sender used when the step began. */
  readonly used: Usage;
  /** The bytes were seen before: they continue an event that is not safe, at most once a back-off step. */
  readonly replay: boolean;
}
