import type { RaiseAlarm } from '../alarms.ts';
import type { Target } from '../auth/contract.ts';
import type { Config } from '../config/resolve.ts';
import type { Head } from '../delivery.ts';
import type { KeyResolver } from '../keys/contract.ts';
import type { Refusal, Unavailability } from '../outcome.ts';
import type { Protocols } from '../protocol.ts';
import type { SenderEntry } from '../senders.ts';
import { orLate } from '../time-limits.ts';

/** A delivery whose URL, possible senders and scheme are known: from configuration, never from headers or body. */
export interface Selected {
  readonly kind: 'selected';
  readonly delivery: Head;
  readonly target: Target;
  /** Not empty; all of one scheme. */
  readonly senders: readonly [SenderEntry, ...SenderEntry[]];
  /** What a refusal comes to where more senders were given than are considered. */
  readonly refused?: (refusal: Refusal) => Refusal | Unavailability;
}

export interface SelectContext {
  readonly config: Pick<Config, 'publicUrl' | 'senders'>;
  readonly protocols: Protocols;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** A look-up that hangs would hold the delivery, and `stop()`, without end. Ms. */
const SENDERS_DEADLINE_MS = 5_000;

export const inTime = <T>(work: Promise<T>): Promise<T> =>
  orLate(work, SENDERS_DEADLINE_MS, () => new Error(`no answer after ${SENDERS_DEADLINE_MS} ms`));
