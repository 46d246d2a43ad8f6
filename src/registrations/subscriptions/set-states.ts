// Derives the states of a set's subscriptions from a check of the seller, and the wait until the next check
// (subscriptions.md §2.7, §4). It is pure. The change of a set calls it.
import { DAY_MS } from '../../windows/calendar.ts';
import type { JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import type { Entry } from './account-reading.ts';
import { differs, type SetRoutes, urlOf } from './entries.ts';
import { isMoving, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';

/** The facts that a check found about a set. */
export interface Look {
  /** The entries of an account that were read. Absent: the seller's entries are unknown. */
  readonly entries?: readonly Entry[];
  /** For an agent: true if the seller has the wanted set. */
  readonly isSet?: boolean;
  readonly routes: SetRoutes;
  /** The outcome of this process's own call before the check. `refused`: refused for good, with `reason`. */
  readonly sent: 'nothing' | 'answered' | 'refused' | 'unanswered';
  readonly reason?: string;
  /** The `ref` whose owner requests it now: if the seller no longer has it, it is sent again. */
  readonly asked?: string;
}

/** The subscriptions of a set that were newly lost or refused. */
export interface News {
  readonly lost: readonly Subscription[];
  readonly refused: readonly Subscription[];
}

/** After this many successful answers, a subscription that is still missing is treated as refused. */
export const MOST_TRIES = 5;

/** Updates a subscription after a check. @returns the subscription with its new state; undefined: it is removed. */
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
 * Returns the reason why the subscription is not known to be in the wanted form, or removed if that is wanted.
 * Undefined if it is.
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

/** Returns the subscription after its move was confirmed. If the target has changed meanwhile, the next move waits. */
function arrived(one: Subscription): Subscription {
  const { move, base, scheme } = one;
  if (move?.state !== 'under_way') return one;
  const { to } = move;
  const isThere = (to.base ?? base) === base && (to.scheme ?? scheme) === scheme;
  return isThere ? unmoved(one) : { ...one, move: { to, state: 'waiting' } };
}

/**
 * Returns the subscription after a refusal. If it was to be moved, its former form is wanted again (subscriptions.md
 * §2.9).
 */
function refused(one: Subscription, look: Look, reason: string, now: number): Subscription | undefined {
  const { move, last } = one;
  if (move?.state !== 'under_way' || !last) return { ...unmoved(one), state: 'refused', reason, since: now };
  const was: Subscription = { ...without(one), ...last, state: 'active', since: now };
  return judged({ ...was, move: { to: move.to, state: 'refused', reason } }, look, now);
}

/**
 * Returns the subscription that is to be removed; undefined if it is gone. If the seller refused the removal, the
 * reason is kept.
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
 * Returns a subscription whose move could not be sent, because the seller even refuses to show the set. It keeps its
 * URL.
 */
function unsent(one: Subscription, { reason = NOT_SEEN }: Look): Subscription {
  if (one.move?.state !== 'waiting') return one;
  return { ...one, move: { to: one.move.to, state: 'refused', reason } };
}

/** Returns the set after a check, with the newly lost and refused subscriptions. */
export function looked(
  set: SubscriptionSet,
  look: Look,
  now: number,
): { readonly set: SubscriptionSet } & News {
  // The refusal may be about a subscription that was sent together with the removal. The removal is soon repeated
  // alone.
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

/** Returns the wait after that many failures in a row (subscriptions.md §2.5). Ms. */
const backOff = (failures: number): number =>
  Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 20), LONGEST_MS);

/** True if the set must be changed again soon. A removal that the seller has refused is only tried once a day. */
export const isOpen = ({ subscriptions }: SubscriptionSet): boolean =>
  subscriptions.some(
    ({ state, reason }) => state === 'pending' || (state === 'removing' && reason === undefined),
  );

/**
 * Returns the time until the next check of a set, by its failures in a row; undefined: there is none.
 * @param failure given if this check failed: the pause that the seller asks for, if any.
 */
export function waitOf(
  set: SubscriptionSet,
  failure: { readonly askedMs: number | undefined } | undefined,
): { readonly failures: number; readonly waitMs: number | undefined } {
  // A check of an agent's set would send it without the lost subscription. The seller must not take that for a wanted
  // removal.
  const left = set.account === undefined ? ['refused', 'lost'] : ['refused'];
  const isWatched = set.subscriptions.some(({ state }) => !left.includes(state));
  if (!failure && !isOpen(set) && !set.subscriptions.some(isMoving))
    return { failures: 0, waitMs: isWatched ? DAY_MS : undefined };
  const failures = (set.failures ?? 0) + 1;
  return { failures, waitMs: isWatched ? (failure?.askedMs ?? backOff(failures)) : undefined };
}

/** Returns the subscriber ids of entries of others that the seller had before, and no longer has. */
export function gone(
  before: readonly Entry[],
  after: readonly Entry[],
  ours: SubscriptionSet,
): readonly string[] {
  const there = new Set(after.map(({ subscriber_id: id }) => id));
  const own = new Set(ours.subscriptions.map(({ subscriberId }) => subscriberId));
  return before.map(({ subscriber_id: id }) => id).filter((id) => !there.has(id) && !own.has(id));
}

/** Returns the owner's account object of a set; undefined: the set is the agent's. */
export const accountIn = ({ account }: SubscriptionSet): JsonObject | undefined =>
  account === undefined ? undefined : (storedObject(account) as JsonObject);
