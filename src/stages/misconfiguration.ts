// Remembers that verified deliveries have proved this receiver's URL and clock to be right. If a signature fails,
// checks if the URL or the clock is wrong (verification.md §2.34, §2.35).
// Made once per receiver; called by `src/auth/rfc9421`. The code that checks URL and clock is loaded for the first
// delivery that fails.

import type { HeadRequest, SetUpWatch } from '../auth/auth-contract.ts';
import { once } from '../shared/single-flight.ts';
import { type BaseKnowledge, createTrialPace, type SetUpKnowledge, type SetUpParts } from './trial-pace.ts';

/** The functions that find a mistake in this receiver's URL or clock, loaded on demand. */
type Trials = Pick<typeof import('./clock-trial.ts'), 'clockTrial'> &
  Pick<typeof import('./url-trial.ts'), 'reencoded' | 'urlTrial'>;

/**
 * The largest number of senders for which the URL is remembered as right. When there are more, all are forgotten, and
 * their deliveries may be tried for other URLs again.
 */
const MAX_SENDERS = 10_000;

/**
 * Makes the `SetUpWatch` of a receiver, which finds mistakes in the receiver's URL and clock. For a delivery that
 * verifies, it writes only two values.
 * @param load loads the functions that find mistakes, for the first delivery that fails.
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
      // If the caller (e.g. of `verifyAndDispatch`) passed no request URL, there is no evidence of another URL.
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
