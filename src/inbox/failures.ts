import type { AlarmCode } from '../alarms.ts';
import { Fault, isOfKind, messageOf } from '../errors.ts';
import type { UnavailableCode } from '../outcome.ts';
import type { Parts } from '../parts.ts';

/** A store that fails is asked again after `pollMs`, twice that, and so on up to this, with jitter. Ms. */
const LONGEST_NAP_MS = 30_000;

/** What a worker is told by its store, and its owner has to mend. */
const FAULT_ALARMS: Readonly<Partial<Record<UnavailableCode, AlarmCode>>> = {
  misconfigured: 'misconfigured',
  not_durable: 'durability_lowered',
};

export interface Failures {
  /** How long to wait before the next try, ms. */
  readonly napAfter: (error: unknown, what: string) => number;
  readonly over: () => void;
}

/** The store may be away for a while; it is asked again until it answers. */
export function createFailures({ config, logger, raiseAlarm, random, notes, now }: Parts): Failures {
  let failures = 0;
  return {
    napAfter(error, what) {
      failures += 1;
      notes.worker.error = messageOf(error);
      if (notes.worker.state === 'running') notes.worker.state = 'failing';
      logger.error({ err: error, failures }, what);
      const alarm = isOfKind(error, Fault) ? FAULT_ALARMS[error.code] : undefined;
      if (alarm) raiseAlarm({ code: alarm, message: (error as Fault).message });
      const longest = Math.min(LONGEST_NAP_MS, config.worker.pollMs * 2 ** Math.min(failures, 20));
      return longest * (0.5 + random() / 2);
    },
    over: () => {
      failures = 0;
      delete notes.worker.error;
      notes.worker.lastLookedAt = now();
      if (notes.worker.state !== 'stopped') notes.worker.state = 'running';
    },
  };
}
