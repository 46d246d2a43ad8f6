// Tries a signed delivery for the other bases that it may be for, if the first does not explain it
// (verification.md §4.16).
// Called by `refusal-cause.ts`. Bounds the verifications that one sender's deliveries may cost.

import type { KeySearch } from '../../keys/key-resolver.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import type { Unavailability } from '../../shared/outcome.ts';
import { putBounded } from '../../shared/bounded.ts';
import type { HeadRequest, Unexplained } from '../auth-contract.ts';
import { type Trial, trialOf } from './candidates.ts';

/** A delivery as it is for one possible URL, with the keys of that URL's senders. */
export interface Attempt {
  readonly trial: Trial;
  readonly search: KeySearch;
}

/** Compares the senders of two URLs: true if they are the very same. */
const isSameSenders = (some: readonly SenderEntry[], others: readonly SenderEntry[]): boolean =>
  some.length === others.length && some.every((entry, i) => entry === others[i]);

/**
 * The attempts for the other URLs that the delivery may be for, one each. @throws as `KeyResolver.find`
 * (rejects)
 */
export async function otherAttempts({ trial, search }: Attempt): Promise<readonly Attempt[]> {
  const { context, request, signed } = trial;
  if (!request.others || trial.host.kind === 'contradiction') return [];
  const attempts: Attempt[] = [];
  for (const { base, target, senders } of await request.others()) {
    // A sender that is registered with another scheme there may not sign.
    if (senders[0]?.auth.scheme !== request.senders[0]?.auth.scheme) continue;
    const its: HeadRequest = { ...request, ...(base && { base }), target, senders, others: undefined };
    const known = isSameSenders(senders, request.senders) ? search : undefined;
    const one = trialOf(context, its, signed);
    if (one)
      attempts.push({ trial: one, search: known ?? (await context.keys.find(signed.parameters.keyid, its)) });
  }
  return attempts;
}

/** Most unexplained deliveries of a sender within a second: each costs a verification for each base. */
const MOST_UNEXPLAINED = 20;
const WITHIN_MS = 1_000;
/** Most senders remembered. A forgotten one may cause as many again. */
const MOST_SENDERS = 10_000;

/** The count for the sender whose key the delivery names, or else for the first that may call. */
function countOf({ trial: { context, request, host }, search }: Attempt): Counted | undefined {
  const known = context.setUp?.unexplained;
  // No other base is tried, so nothing is counted.
  if (!known || !request.others || host.kind === 'contradiction') return undefined;
  const { agentUrl: name = '' } = search.candidates[0]?.sender ?? request.senders[0] ?? {};
  const { arrivedAt: at } = request;
  const last = known.get(name);
  const is = last && Math.abs(at - last.since) < WITHIN_MS ? last : { since: at, count: 0 };
  return { ...is, add: () => putBounded(known, name, { ...is, count: is.count + 1 }, MOST_SENDERS) };
}

interface Counted extends Unexplained {
  readonly add: () => void;
}

/** Refuses to try a delivery any further if too many failed before it; undefined otherwise. */
export function notTried(first: Attempt): Unavailability | undefined {
  if ((countOf(first)?.count ?? 0) < MOST_UNEXPLAINED) return undefined;
  return { kind: 'unavailable', code: 'overloaded', check: 10, detail: NOT_TRIED };
}

const NOT_TRIED =
  'The signature does not verify for the first URL that the request may be for, and so many deliveries of this sender verified for none within a second that the others were not tried.';

/** Counts a delivery with a known key that no base accepted. */
export const countFailure = (first: Attempt): void => countOf(first)?.add();
