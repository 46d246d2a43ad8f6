import type { RaiseAlarm } from '../alarms.ts';
import type { SetUpWatch } from '../auth/contract.ts';
import { putBounded } from '../bounded.ts';
import type { Config } from '../config/resolve.ts';
import type { UrlForm } from '../config/url-forms.ts';

/** What is known of `publicUrl` by one sender's signatures: that it is right, or what was tried to find out. */
export type UrlKnowledge = 'right' | UrlTrials;

export interface UrlTrials {
  /** When the other forms were tried last, receiver's clock, Unix ms. */
  triedAt: number | undefined;
  /** Trials so far: several keys of one sender under one `kid` take turns. */
  turn: number;
  /** The form under which a signature verified. Holds until one verifies as configured. */
  found: UrlForm | undefined;
  /** The trial under way, where a delivery may wait for another's. */
  running: Promise<unknown> | undefined;
}

export interface SetUpContext {
  readonly config: Pick<Config, 'publicUrl' | 'allowLoopback'>;
  readonly raiseAlarm: RaiseAlarm;
  /** Whether one delivery may wait for another's trial (`requestsMayShare`). */
  readonly shared: boolean;
  /**
   * By agent URL. With a `publicUrl` that ends in `/*` too: its paths are the request's, without end, and all that can be
   * wrong about it is its origin, which one signature under any of them proves.
   */
  readonly urls: Map<string, UrlKnowledge>;
}

/** Senders remembered. One that is forgotten may be tried once more. */
const MAX_SENDERS = 10_000;

/** @returns what is known of the sender's URL, made where nothing is. */
export function urlKnowledge(urls: SetUpContext['urls'], agentUrl: string): UrlKnowledge {
  const none = { triedAt: undefined, turn: 0, found: undefined, running: undefined };
  return urls.get(agentUrl) ?? putBounded(urls, agentUrl, none, MAX_SENDERS);
}

/** Made once a receiver. What it does for a delivery that verifies is one look; the rest is loaded when first needed. */
export function createSetUpWatch(given: Omit<SetUpContext, 'urls'>): SetUpWatch {
  const urls: SetUpContext['urls'] = new Map();
  const context: SetUpContext = { ...given, urls };
  return {
    verified({ agentUrl }) {
      if (urls.get(agentUrl) !== 'right') putBounded(urls, agentUrl, 'right', MAX_SENDERS);
    },
    async signedElsewhere(request, candidates, verifies) {
      // The call with two arguments has no evidence.
      if (request.delivery.url === undefined) return undefined;
      const open = candidates.filter(({ sender }) => urls.get(sender.agentUrl) !== 'right');
      if (open.length === 0) return undefined;
      const { tryOtherUrls } = await import('./url-trial.ts');
      return tryOtherUrls(context, request, open, verifies);
    },
  };
}
