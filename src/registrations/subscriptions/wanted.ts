// Adds or removes a requested subscription in the stored set, before anything is sent to the seller (subscriptions.md
// §1.4). Pure functions, called by `subscribe` and `unsubscribe`.
import { canonicalJson } from '../../codec/canonical-json.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { sellerIn } from '../seller.ts';
import { isSameSet, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';
import type { SubscriptionRequest } from './subscription-types.ts';

/** The most subscriptions in a stored set, including refused ones. */
export const MOST_KEPT = 32;

/** True if the subscription already has, or is about to get, the requested event types and scheme. */
export const isAsked = (
  one: Subscription,
  { eventTypes, scheme = 'signature' }: SubscriptionRequest,
): boolean => one.state !== 'refused' && one.scheme === scheme && isSameSet(one.eventTypes, eventTypes);

/**
 * Returns the set, i.e. the subscriptions of an account or agent, with the requested subscription in it.
 * @param anew a new id, used if the subscription is new, and a URL, used if the seller must be asked to send there.
 * @throws RegistrationError `set_full` if the set is full.
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

/**
 * Returns the subscription with the requested event types and scheme. An active one that already has both stays active
 * until a check shows otherwise.
 */
function wanted(
  known: Subscription | undefined,
  asked: Pick<Subscription, 'ref' | 'subscriberId' | 'eventTypes' | 'scheme' | 'base' | 'route'>,
  now: number,
): Subscription {
  if (!known) return { ...asked, state: 'pending', since: now };
  const { reason: _reason, tries: _tries, ...is } = known;
  const isSame = is.scheme === asked.scheme && isSameSet(is.eventTypes, asked.eventTypes);
  if (isSame && is.state === 'active') return movedAgain(is);
  // The subscription is just being moved to another URL or scheme, so it is left as it is.
  if (isSame && is.state === 'pending' && is.move) return is;
  const since = isSame && is.state === 'pending' ? is.since : now;
  const { eventTypes, scheme, base, route } = asked;
  return { ...unmoved(is), eventTypes, scheme, base, route, state: 'pending', since };
}

/**
 * Lets a refused move of the subscription wait for another try, or drops the move if it leads to another scheme than
 * the requested one.
 */
function movedAgain(one: Subscription): Subscription {
  const { move } = one;
  if (!move) return one;
  const { to } = move;
  return (to.scheme ?? one.scheme) === one.scheme ? { ...one, move: { to, state: 'waiting' } } : unmoved(one);
}

/**
 * Returns the set with the subscription `ref` marked for removal; undefined if the set does not contain that
 * subscription.
 */
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
