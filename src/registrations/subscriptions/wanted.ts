// Writes the wanted subscriptions into the set, before anything is sent (subscriptions.md §1.4). Pure. `subscribe` and
// `unsubscribe` call it; the plan of a move uses its bound.
import { canonicalJson } from '../../codec/canonical-json.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { sellerIn } from '../seller.ts';
import { isSameSet, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';
import type { SubscriptionRequest } from './subscription-types.ts';

/** The largest number of subscriptions that are kept in a set, refused ones included. */
export const MOST_KEPT = 32;

/** True if it is set as requested already, or is about to be. */
export const isAsked = (
  one: Subscription,
  { eventTypes, scheme = 'signature' }: SubscriptionRequest,
): boolean => one.state !== 'refused' && one.scheme === scheme && isSameSet(one.eventTypes, eventTypes);

/**
 * The set with the requested subscription.
 * @param anew its id if it is new, and its URL if it is sent.
 * @throws RegistrationError `set_full`
 */
export function withWanted(
  is: SubscriptionSet | undefined,
  request: SubscriptionRequest,
  anew: Pick<Subscription, 'subscriberId' | 'base' | 'route'>,
  now: number,
): SubscriptionSet {
  const { account, ref, eventTypes, scheme = 'signature' } = request;
  const { failures: _failures, ...set }: SubscriptionSet = is ?? { seller: request, subscriptions: [] };
  const known = set.subscriptions.find((one) => one.ref === ref);
  const others = set.subscriptions.filter((one) => one !== known);
  if (others.length >= MOST_KEPT) {
    throw new RegistrationError(
      'set_full',
      `ref: ${MOST_KEPT} subscriptions of this account or agent are kept, which is the limit. Unsubscribe those that were refused: subscriptions.list({ agentUrl, state: 'refused' }).`,
    );
  }
  return {
    ...set,
    seller: sellerIn(request),
    ...(account && { account: canonicalJson(account) }),
    subscriptions: [...others, wanted(known, { ref, ...anew, eventTypes, scheme }, now)],
  };
}

/** The subscription as it is requested. If it is active in this form, it stays so until a look shows otherwise. */
function wanted(
  known: Subscription | undefined,
  asked: Pick<Subscription, 'ref' | 'subscriberId' | 'eventTypes' | 'scheme' | 'base' | 'route'>,
  now: number,
): Subscription {
  if (!known) return { ...asked, state: 'pending', since: now };
  const { reason: _reason, tries: _tries, ...is } = known;
  const isSame = is.scheme === asked.scheme && isSameSet(is.eventTypes, asked.eventTypes);
  if (isSame && is.state === 'active') return movedAgain(is);
  // It is on its way to the target of a move.
  if (isSame && is.state === 'pending' && is.move) return is;
  const since = isSame && is.state === 'pending' ? is.since : now;
  const { eventTypes, scheme, base, route } = asked;
  return { ...unmoved(is), eventTypes, scheme, base, route, state: 'pending', since };
}

/** Tries a refused move again. A move to another scheme than the owner now requests is over. */
function movedAgain(one: Subscription): Subscription {
  const { move } = one;
  if (!move) return one;
  const { to } = move;
  return (to.scheme ?? one.scheme) === one.scheme ? { ...one, move: { to, state: 'waiting' } } : unmoved(one);
}

/** The set with the subscription to be removed; undefined if it has none of that name. */
export function withUnwanted(
  is: SubscriptionSet | undefined,
  ref: string,
  now: number,
): SubscriptionSet | undefined {
  if (!is?.subscriptions.some((one) => one.ref === ref)) return undefined;
  const { failures: _failures, ...set } = is;
  return {
    ...set,
    subscriptions: set.subscriptions.map((one) => {
      if (one.ref !== ref) return one;
      const { reason: _reason, tries: _tries, ...known } = unmoved(one);
      return { ...known, state: 'removing', since: one.state === 'removing' ? one.since : now };
    }),
  };
}
