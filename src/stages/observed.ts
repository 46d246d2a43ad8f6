import type { Event } from '../events/event.ts';
import type { Handled } from '../options.ts';
import type { HandledRun } from './dispatch.ts';

/** How a run ended. */
export interface RanTo {
  readonly state: Exclude<Handled['state'], 'stale'>;
  readonly error: string | undefined;
  /** On the clock of `performance.now()`. */
  readonly endedAt: number;
  /** When its delivery arrived, on the receiver's clock, Unix ms; absent: a worker's. */
  readonly arrivedAt: number | undefined;
}

/** Who is told of what happens inside. Absent where nobody listens: then nothing is made for it. */
export interface Observed {
  /** A run of this process has ended, and the store knows. */
  readonly ran?: (run: HandledRun, to: RanTo) => void;
  /** An event is older than its task's mark, as its delivery brought it: there was no run. */
  readonly stale?: (event: Event, deliveryId: string) => void;
}
