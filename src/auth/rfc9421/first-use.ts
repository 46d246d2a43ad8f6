import type { Candidate } from '../../keys/contract.ts';
import { type Failure, furthest, tryCandidates, type Trial, type TrialResult } from './candidates.ts';

/**
 * What `tryCandidates` gives, where the key of whoever verifies is that sender's own too (verification.md §2.36). One
 * that is not, or not yet known to be, is a fault on our side and blocks no other.
 * @param tried what trying the candidates gave already.
 */
export async function tryOwners(
  trial: Trial,
  candidates: readonly Candidate[],
  tried?: TrialResult,
): Promise<TrialResult | undefined> {
  let failure: Failure | undefined;
  let left = candidates;
  let result = tried ?? (await tryCandidates(trial, left));
  while (result?.kind === 'verified') {
    const { candidate } = result;
    const detail = await candidate.firstUse?.();
    if (detail === undefined) return result;
    failure = furthest(failure, { kind: 'unavailable', code: 'keys_unavailable', check: 7, detail });
    left = left.slice(left.indexOf(candidate) + 1);
    result = await tryCandidates(trial, left);
  }
  return failure && result ? furthest(failure, result) : (failure ?? result);
}
