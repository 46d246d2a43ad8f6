import { finishOutcome, faultVerdict, type OutcomeContext } from './answering.ts';
import type { Door } from './options.ts';
import { unavailable } from './outcome.ts';
import type { Parts } from './parts.ts';

/** Nothing is known of who sent. */
const NOBODY: OutcomeContext = { who: {} };

/** Answers that adapters need besides those of `open` and `verifyAndDispatch`. */
export function createDoor(parts: Parts): Door {
  return {
    maxBodyBytes: parts.config.maxBodyBytes,
    consumed(detail) {
      parts.raiseAlarm({ code: 'misconfigured', message: detail });
      return finishOutcome(unavailable('body_consumed', detail), NOBODY, parts);
    },
    fault: (error) => finishOutcome(faultVerdict(error, parts), NOBODY, parts),
  };
}
