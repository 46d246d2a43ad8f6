import { LONG } from '../form.ts';
import { tell } from '../../support/tell.ts';

/** What each run prints in its long form. */
export interface Figures {
  readonly run: string;
  readonly events: number;
  readonly faults: number;
  /** Acknowledged, and gone or never handled. */
  readonly lost: number;
  /** Completed twice, or with two effects in `ctx.transaction`. */
  readonly twice: number;
  readonly dead: number;
}

export function print(figures: Figures): void {
  if (LONG) tell(figures);
}
