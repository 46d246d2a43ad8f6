import { LONG } from '../form.ts';
import { tell } from '../../support/tell.ts';

/** What each run prints in its long form. */
export interface Figures {
  readonly run: string;
  readonly events: number;
  /** Those that were made, or that answers told of. */
  readonly faults: number;
  /** Acknowledged, and gone or never handled. */
  readonly lost: number;
  /** Acknowledged inline, and not completed: handled again when it comes again. */
  readonly unapplied?: number;
  /** Completed twice, with two effects in `ctx.transaction`, or handled again though it was acknowledged inline. */
  readonly twice: number;
  /** Absent where none is counted. */
  readonly dead?: number;
}

export function print(figures: Figures): void {
  if (LONG) tell(figures);
}
