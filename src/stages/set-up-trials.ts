import type { SetUpWatch } from '../auth/contract.ts';
import { clockTrial } from './clock-trial.ts';
import type { SetUpKnowledge, SetUpParts } from './set-up.ts';
import { createTrialPace } from './trial-pace.ts';
import { urlTrial } from './url-trial.ts';

/** What is done about a delivery that failed by what may be our own fault (verification.md §2.34, §2.35). */
export function createSetUpTrials(
  parts: SetUpParts,
  known: SetUpKnowledge,
  shared: boolean,
): Omit<SetUpWatch, 'verified'> {
  return {
    signedElsewhere: urlTrial(parts, known, createTrialPace(shared)),
    outsideWindow: clockTrial(parts, known, createTrialPace(shared)),
  };
}
