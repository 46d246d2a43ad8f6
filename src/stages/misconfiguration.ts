// Remembers that verified deliveries have proved URL and clock right. If a signature fails, checks if one of them
// is wrong (verification.md §2.34, §2.35).
// Made once per receiver; `src/auth/rfc9421/verify.ts` calls it. The code of these trials is loaded for the first
// delivery that fails.

import type { HeadRequest, SetUpWatch } from '../auth/auth-contract.ts';
import { once } from '../shared/single-flight.ts';
import { type BaseKnowledge, createTrialPace, type SetUpKnowledge, type SetUpParts } from './trial-pace.ts';

/** The functions that distinguish mistakes in our set-up from mistakes of the sender. */
type Trials = Pick<typeof import('./clock-trial.ts'), 'clockTrial'> &
  Pick<typeof import('./url-trial.ts'), 'reencoded' | 'urlTrial'>;

/** Most senders remembered. A trial for a forgotten sender may be repeated. */
const MAX_SENDERS = 10_000;

/**
 * Made once per receiver. For a delivery that verifies, only two values are written.
 * @param load called for the first delivery that fails.
 */
export function createSetUpWatch(parts: SetUpParts, load: () => Promise<Trials>): SetUpWatch {
  const known: SetUpKnowledge = { insideAt: undefined, offsetMs: undefined };
  const [first, ...others] = parts.config.bases;
  const knownOf = new Map<object, BaseKnowledge>(others.map((base) => [base, { base, urlRight: new Set() }]));
  const ofFirst: BaseKnowledge = { base: first, urlRight: new Set() };
  const ofBase = ({ base }: Pick<HeadRequest, 'base'>): BaseKnowledge =>
    (base && knownOf.get(base)) ?? ofFirst;
  const trials = once(async () => {
    const { clockTrial, reencoded, urlTrial } = await load();
    const byForms = new Map(
      [ofFirst, ...knownOf.values()].map((of) => [of, urlTrial(parts, of, createTrialPace())]),
    );
    return { reencoded, byForms, byClock: clockTrial(parts, known, createTrialPace()) };
  });
  return {
    unexplained: new Map(),
    verified({ agentUrl }, request) {
      const { urlRight } = ofBase(request);
      known.insideAt = request.arrivedAt;
      known.offsetMs = undefined;
      if (urlRight.has(agentUrl)) return;
      if (urlRight.size >= MAX_SENDERS) urlRight.clear();
      urlRight.add(agentUrl);
    },
    async signedElsewhere(request, candidates, verifies) {
      const { url, urlNormalised } = request.delivery;
      const of = ofBase(request);
      const isOpen = urlNormalised || candidates.some(({ sender }) => !of.urlRight.has(sender.agentUrl));
      // `verifyAndDispatch` was called without a request URL, so there is no evidence of another URL.
      if (url === undefined || !isOpen) return undefined;
      const { reencoded, byForms } = await trials();
      return (
        (await reencoded({ ...parts, base: of.base }, request, candidates, verifies)) ??
        byForms.get(of)?.(request, candidates, verifies)
      );
    },
    outsideWindow: async (request, late) => (await trials()).byClock(request, late),
  };
}
