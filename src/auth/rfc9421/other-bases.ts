// If a signed delivery does not verify for the first base URL, tries the other base URLs (verification.md §4.16).
// Called by `refusal-cause.ts`. Limits the verifications that one sender's deliveries may cost.

import type { KeySearch } from '../../keys/key-resolver.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import type { Unavailability } from '../../shared/outcome.ts';
import { putBounded } from '../../shared/bounded.ts';
import type { HeadRequest, Unexplained } from '../auth-contract.ts';
import { type Trial, trialOf } from './candidates.ts';

/** A delivery that is tried for one possible URL, with the keys of that URL's senders. */
export interface Attempt {
  readonly trial: Trial;
  readonly search: KeySearch;
}

/** True if two URLs have exactly the same senders, in the same order. */
const isSameSenders = (some: readonly SenderEntry[], others: readonly SenderEntry[]): boolean =>
  some.length === others.length && some.every((entry, i) => entry === others[i]);

/**
 * Returns one attempt for each other URL for which the delivery may be meant.
 * @throws the errors of `KeyResolver.find` (rejects).
 */
export async function otherAttempts({ trial, search }: Attempt): Promise<readonly Attempt[]> {
  const { context, request, signed } = trial;
  if (!request.others || trial.host.kind === 'contradiction') return [];
  const attempts: Attempt[] = [];
  for (const { base, target, senders } of await request.others()) {
    // The senders of that URL are registered with another scheme, so they may not sign there.
    if (senders[0]?.auth.scheme !== request.senders[0]?.auth.scheme) continue;
    const its: HeadRequest = { ...request, ...(base && { base }), target, senders, others: undefined };
    const known = isSameSenders(senders, request.senders) ? search : undefined;
    const one = trialOf(context, its, signed);
    if (one)
      attempts.push({ trial: one, search: known ?? (await context.keys.find(signed.parameters.keyid, its)) });
  }
  return attempts;
}

/**
 * The largest number of deliveries of a sender within a second that may verify for no base URL. Further ones are tried
 * for the first base URL only, because each other base URL costs a verification.
 */
const MOST_UNEXPLAINED = 20;
const WITHIN_MS = 1_000;
/** The largest number of senders that are remembered. The count of a forgotten sender begins again. */
const MOST_SENDERS = 10_000;

/**
 * Returns the count of failed deliveries of the sender whose key this delivery names. If no sender has that key, it is
 * the count of the first sender that may call the URL.
 */
function countOf({ trial: { context, request, host }, search }: Attempt): Counted | undefined {
  const known = context.setUp?.unexplained;
  // No other base URL will be tried for this delivery, so nothing is counted.
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

/**
 * Returns a fault if too many deliveries of the sender failed within a second; otherwise undefined. A delivery with
 * this fault is not tried for other base URLs.
 */
export function notTried(first: Attempt): Unavailability | undefined {
  if ((countOf(first)?.count ?? 0) < MOST_UNEXPLAINED) return undefined;
  return { kind: 'unavailable', code: 'overloaded', check: 10, detail: NOT_TRIED };
}

const NOT_TRIED =
  'The signature does not verify for the first URL that the request may be for, and so many deliveries of this sender verified for none within a second that the others were not tried.';

/** Counts a delivery that names a known key but verified for no base URL. */
export const countFailure = (first: Attempt): void => countOf(first)?.add();
