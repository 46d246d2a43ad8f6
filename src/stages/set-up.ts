import type { RaiseAlarm } from '../alarms.ts';
import type { SetUpWatch } from '../auth/contract.ts';
import type { Config } from '../config/resolve.ts';
import { once } from '../single-flight.ts';
import type { Store } from '../stores/contract.ts';

/** What signatures that verified have shown of a receiver's set-up. */
export interface SetUpKnowledge {
  /**
   * Agent URLs of senders one of whose signatures verified for `publicUrl`. With one that ends in `/*` too: its paths are
   * the request's, without end, and all that can be wrong about it is its origin, which one under any of them proves.
   */
  readonly urlRight: Set<string>;
  /** When one was inside its window last. Receiver's clock, Unix ms. */
  insideAt: number | undefined;
  /** What has to be added to the clock, where it was found to be wrong. Ms. Holds until one is inside without it. */
  offsetMs: number | undefined;
}

export interface SetUpParts {
  readonly config: Pick<Config, 'publicUrl' | 'allowLoopback'>;
  readonly raiseAlarm: RaiseAlarm;
  readonly store: Pick<Store, 'name' | 'clock'>;
  /** Unix ms. */
  readonly now: () => number;
}

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
