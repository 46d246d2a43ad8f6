// Derives the new states of subscriptions from the entries that the seller has, and the wait until the next check
// (subscriptions.md §2.7, §4). Pure functions, called when a subscription set is changed.
import { DAY_MS } from '../../windows/calendar.ts';
import type { JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import type { Entry } from './account-reading.ts';
import { differs, type SetRoutes, urlOf } from './entries.ts';
import { isMoving, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';

/** The findings of a check of a subscription set at its seller. */
export interface Look {
  /** The account's entries as the seller showed them. Absent: unknown, or the set is an agent's. */
  readonly entries?: readonly Entry[];
  /** For an agent's set: true if the seller has exactly the wanted entries, false if not. Absent: unknown. */
  readonly isSet?: boolean;
  readonly routes: SetRoutes;
  /**
   * The outcome of the call that sent the wanted entries. `nothing`: there was no such call. `refused`: the seller
   * refused for good; `reason` says why. `unanswered`: the outcome is unknown.
   */
  readonly sent: 'nothing' | 'answered' | 'refused' | 'unanswered';
  readonly reason?: string;
  /**
   * The `ref` of the subscription that the application requests now. If the seller no longer has this subscription, it
   * becomes `pending` instead of `lost`.
   */
  readonly asked?: string;
}

/** The subscriptions whose state became `lost` or `refused` in this check. */
export interface News {
  readonly lost: readonly Subscription[];
  readonly refused: readonly Subscription[];
}

/** After this many calls without an error, a subscription that the seller still does not have counts as refused. */
export const MOST_TRIES = 5;

/** Returns a subscription with its new state after a check; undefined if it was to be removed and is gone. */
function judged(one: Subscription, look: Look, now: number): Subscription | undefined {
  const why = whyNot(one, look);
  if (one.state === 'removing') return removed(one, look, why);
  if (why === undefined) return one.state === 'active' ? without(one) : activated(one, now);
  if (one.state === 'pending') return waiting(one, look, why, now);
  const isMissed = one.state === 'active' && isSeen(look);
  if (!isMissed) return one;
  const is = { reason: why, since: now };
  return one.ref === look.asked
    ? { ...one, ...is, state: 'pending' }
    : { ...unmoved(one), ...is, state: 'lost' };
}

const isSeen = ({ entries, isSet }: Look): boolean => entries !== undefined || isSet !== undefined;

const NOT_SEEN = 'it is not known yet whether the seller has it';

/**
 * Returns the reason why the seller does not have the subscription as wanted, or why this is unknown. Undefined if the
 * seller has it as wanted, or has removed a `removing` one.
 */
function whyNot(one: Subscription, { entries, isSet, routes }: Look): string | undefined {
  if (entries) {
    const [entry, second] = entries.filter(({ subscriber_id: id }) => id === one.subscriberId);
    if (one.state === 'removing') return entry && 'the seller still has it';
    return second ? 'the seller has it more than once' : differs(entry, one, urlOf(one, routes));
  }
  if (isSet === undefined) return NOT_SEEN;
  if (isSet)
    return one.state === 'pending' || one.state === 'active' || one.state === 'removing'
      ? undefined
      : NOT_SEEN;
  return 'the seller has another set of the agent';
}

const without = ({ reason: _reason, tries: _tries, ...one }: Subscription): Subscription => one;

function activated(one: Subscription, now: number): Subscription {
  const { eventTypes, scheme, base, route } = one;
  const last = { eventTypes, scheme, base, route };
  return { ...without(arrived(one)), state: 'active', since: now, last };
}

/**
 * Returns the subscription after the seller confirmed its present URL. This ends its move, unless the move's target
 * changed meanwhile: then the move waits again.
 */
function arrived(one: Subscription): Subscription {
  const { move, base, scheme } = one;
  if (move?.state !== 'under_way') return one;
  const { to } = move;
  const isThere = (to.base ?? base) === base && (to.scheme ?? scheme) === scheme;
  return isThere ? unmoved(one) : { ...one, move: { to, state: 'waiting' } };
}

/**
 * Returns the subscription after the seller refused it. If only its move was refused, the subscription goes back to its
 * latest active form (subscriptions.md §2.9).
 */
function refused(one: Subscription, look: Look, reason: string, now: number): Subscription | undefined {
  const { move, last } = one;
  if (move?.state !== 'under_way' || !last) return { ...unmoved(one), state: 'refused', reason, since: now };
  const was: Subscription = { ...without(one), ...last, state: 'active', since: now };
  return judged({ ...was, move: { to: move.to, state: 'refused', reason } }, look, now);
}

/**
 * Returns a `removing` subscription after a check; undefined if the seller no longer has it. If the seller refused the
 * removal, the reason is stored.
 */
function removed(one: Subscription, look: Look, why: string | undefined): Subscription | undefined {
  if (why === undefined) return undefined;
  return look.sent === 'refused' ? { ...one, reason: look.reason ?? why } : without(one);
}

function waiting(one: Subscription, look: Look, why: string, now: number): Subscription | undefined {
  const reason = look.reason ?? why;
  if (look.sent === 'refused') return refused(one, look, reason, now);
  if (look.sent !== 'answered') return { ...one, reason };
  const tries = (one.tries ?? 0) + 1;
  if (tries < MOST_TRIES) return { ...one, tries, reason };
  const given = `${tries} calls were answered without an error, and ${reason}`;
  return refused(one, look, given, now);
}

/**
 * Returns the subscription with its waiting move marked `refused`, because the seller refused the requests that must
 * precede the move. The subscription keeps its URL.
 */
function unsent(one: Subscription, { reason = NOT_SEEN }: Look): Subscription {
  if (one.move?.state !== 'waiting') return one;
  return { ...one, move: { to: one.move.to, state: 'refused', reason } };
}

/**
 * Returns the set with the states that follow from a check, and lists the subscriptions that became lost or refused.
 */
export function looked(
  set: SubscriptionSet,
  look: Look,
  now: number,
): { readonly set: SubscriptionSet } & News {
  // If a pending subscription was sent with a removal, a refusal may concern that subscription. Then the removal is
  // soon repeated alone.
  const isBlamed = set.subscriptions.every(({ state }) => state !== 'pending');
  const subscriptions = set.subscriptions.flatMap((one) => {
    const isOther = one.state === 'removing' && look.sent === 'refused' && !isBlamed;
    const is = isBlamed && look.sent === 'refused' ? unsent(one, look) : one;
    return judged(is, isOther ? { ...look, sent: 'unanswered' } : look, now) ?? [];
  });
  const fresh = (state: Subscription['state']): readonly Subscription[] =>
    subscriptions.filter((one) => {
      const was = set.subscriptions.find(({ subscriberId }) => subscriberId === one.subscriberId);
      return one.state === state && was?.state !== state;
    });
  return { set: { ...set, subscriptions }, lost: fresh('lost'), refused: fresh('refused') };
}

/** True if a subscription of the set is to be sent or removed. */
export const isToSend = ({ subscriptions }: SubscriptionSet): boolean =>
  subscriptions.some(({ state }) => state === 'pending' || state === 'removing');

const FIRST_MS = 10_000;
const LONGEST_MS = 3_600_000;

/** Returns the wait before the next check, after that many failures in a row (subscriptions.md §2.5). Ms. */
const backOff = (failures: number): number =>
  Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 20), LONGEST_MS);

/**
 * True if the set must be changed again soon. A removal that the seller refused does not count: it is tried again only
 * once a day.
 */
export const isOpen = ({ subscriptions }: SubscriptionSet): boolean =>
  subscriptions.some(
    ({ state, reason }) => state === 'pending' || (state === 'removing' && reason === undefined),
  );

/**
 * Returns the new number of failures in a row, and the wait until the next check; `waitMs` undefined: no check. Ms.
 * @param failure present if this check failed: `askedMs` is the pause that the seller asks for, if any.
 */
export function waitOf(
  set: SubscriptionSet,
  failure: { readonly askedMs: number | undefined } | undefined,
): { readonly failures: number; readonly waitMs: number | undefined } {
  // Subscriptions in these states are not checked again. An agent's `lost` subscription is not checked either: the
  // check would send the set without it. The seller could take that for a wanted removal.
  const left = set.account === undefined ? ['refused', 'lost'] : ['refused'];
  const isWatched = set.subscriptions.some(({ state }) => !left.includes(state));
  if (!failure && !isOpen(set) && !set.subscriptions.some(isMoving))
    return { failures: 0, waitMs: isWatched ? DAY_MS : undefined };
  const failures = (set.failures ?? 0) + 1;
  return { failures, waitMs: isWatched ? (failure?.askedMs ?? backOff(failures)) : undefined };
}

/** Returns the `subscriber_id` of each entry of another subscriber that the seller had before and no longer has. */
export function gone(
  before: readonly Entry[],
  after: readonly Entry[],
  ours: SubscriptionSet,
): readonly string[] {
  const there = new Set(after.map(({ subscriber_id: id }) => id));
  const own = new Set(ours.subscriptions.map(({ subscriberId }) => subscriberId));
  return before.map(({ subscriber_id: id }) => id).filter((id) => !there.has(id) && !own.has(id));
}

/** Returns the account object that the application gave; undefined: the set is for the whole agent. */
export const accountIn = ({ account }: SubscriptionSet): JsonObject | undefined =>
  account === undefined ? undefined : (storedObject(account) as JsonObject);
