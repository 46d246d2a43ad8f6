import type { SetUpWatch } from '../auth/auth-contract.ts';
import { once } from '../shared/single-flight.ts';
import { createTrialPace, type SetUpKnowledge, type SetUpParts } from './trial-pace.ts';

/** The trials of what failed by what may be our own fault. */
type Trials = Pick<typeof import('./clock-trial.ts'), 'clockTrial'> &
  Pick<typeof import('./url-trial.ts'), 'reencoded' | 'urlTrial'>;

/** Senders remembered. One that is forgotten may be tried once more. */
const MAX_SENDERS = 10_000;

/**
 * Made once a receiver. For a delivery that verifies it takes two notes.
 * @param load called for the first delivery that fails.
 */
export function createSetUpWatch(parts: SetUpParts, load: () => Promise<Trials>): SetUpWatch {
  const known: SetUpKnowledge = { urlRight: new Set(), insideAt: undefined, offsetMs: undefined };
  const { urlRight } = known;
  const trials = once(async () => {
    const { clockTrial, reencoded, urlTrial } = await load();
    return {
      reencoded,
      byForms: urlTrial(parts, known, createTrialPace()),
      byClock: clockTrial(parts, known, createTrialPace()),
    };
  });
  return {
    verified({ agentUrl }, arrivedAt) {
      known.insideAt = arrivedAt;
      known.offsetMs = undefined;
      if (urlRight.has(agentUrl)) return;
      if (urlRight.size >= MAX_SENDERS) urlRight.clear();
      urlRight.add(agentUrl);
    },
    async signedElsewhere(request, candidates, verifies) {
      const { url, urlNormalised } = request.delivery;
      const isOpen = urlNormalised || candidates.some(({ sender }) => !urlRight.has(sender.agentUrl));
      // The call with two arguments has no evidence.
      if (url === undefined || !isOpen) return undefined;
      const { reencoded, byForms } = await trials();
      return (
        (await reencoded(parts, request, candidates, verifies)) ?? byForms(request, candidates, verifies)
      );
    },
    outsideWindow: async (request, late) => (await trials()).byClock(request, late),
  };
}
