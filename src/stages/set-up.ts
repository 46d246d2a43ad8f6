import type { SetUpWatch } from '../auth/contract.ts';
import { once } from '../single-flight.ts';
import type { SetUpKnowledge, SetUpParts } from './trials.ts';

/** Senders remembered. One that is forgotten may be tried once more. */
const MAX_SENDERS = 10_000;

/**
 * Made once a receiver. For a delivery that verifies it takes two notes; what is done about others is loaded when it is
 * first needed.
 */
export function createSetUpWatch(parts: SetUpParts): SetUpWatch {
  const known: SetUpKnowledge = { urlRight: new Set(), insideAt: undefined, offsetMs: undefined };
  const { urlRight } = known;
  const trials = once(async () => (await import('./trials.ts')).createSetUpTrials(parts, known));
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
      return (await trials()).signedElsewhere(request, candidates, verifies);
    },
    outsideWindow: async (request, late) => (await trials()).outsideWindow(request, late),
  };
}
