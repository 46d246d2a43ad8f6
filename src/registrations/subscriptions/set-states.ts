import { DAY_MS } from '../../windows/calendar.ts';
import type { JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import type { Entry } from './account-reading.ts';
import { differs, type SetRoutes, urlOf } from './entries.ts';
import { isMoving, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';

/* What a look at the seller makes of the subscriptions of a set (subscriptions.md §2.7, §4). */

/** The facts that a look found about a set. */
export interface Look {
  /** Of an account: what was read. Absent: nothing is known of what the seller has. */
  readonly entries?: readonly Entry[];
  /** Of an agent: whether the seller has what is wanted. */
  readonly isSet?: boolean;
  readonly routes: SetRoutes;
  /** By this process, before it looked. `refused`: for good, with `reason`. */
  readonly sent: 'nothing' | 'answered' | 'refused' | 'unanswered';
  readonly reason?: string;
  /** Its owner asks for it now: where it is gone, it is sent again. */
  readonly asked?: string;
}

/** The news about a set. */
export interface News {
  readonly lost: readonly Subscription[];
  readonly refused: readonly Subscription[];
}

/** Answers without an error after which a subscription was not there. */
export const MOST_TRIES = 5;

/** @returns the subscription as it is by now; undefined: it is gone. */
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

/** Why it is not known to be as it is wanted, or gone where that is wanted; undefined where it is. */
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

/** Where it was to go last may be elsewhere. */
function arrived(one: Subscription): Subscription {
  const { move, base, scheme } = one;
  if (move?.state !== 'under_way') return one;
  const { to } = move;
  const isThere = (to.base ?? base) === base && (to.scheme ?? scheme) === scheme;
  return isThere ? unmoved(one) : { ...one, move: { to, state: 'waiting' } };
}

/** One that was to go elsewhere is wanted as it was (subscriptions.md §2.9). */
function refused(one: Subscription, look: Look, reason: string, now: number): Subscription | undefined {
  const { move, last } = one;
  if (move?.state !== 'under_way' || !last) return { ...unmoved(one), state: 'refused', reason, since: now };
  const was: Subscription = { ...without(one), ...last, state: 'active', since: now };
  return judged({ ...was, move: { to: move.to, state: 'refused', reason } }, look, now);
}

/** One whose removal the seller has refused has a reason. */
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

/** One that was to be sent elsewhere next stays, where the seller does not even let the set be read. */
function unsent(one: Subscription, { reason = NOT_SEEN }: Look): Subscription {
  if (one.move?.state !== 'waiting') return one;
  return { ...one, move: { to: one.move.to, state: 'refused', reason } };
}

/** The set after a look, and what is new of it. */
export function looked(
  set: SubscriptionSet,
  look: Look,
  now: number,
): { readonly set: SubscriptionSet } & News {
  // What was to be set beside it may be what was refused: it is removed without that soon.
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

/** Whether anything of it is to be sent. */
export const isToSend = ({ subscriptions }: SubscriptionSet): boolean =>
  subscriptions.some(({ state }) => state === 'pending' || state === 'removing');

const FIRST_MS = 10_000;
const LONGEST_MS = 3_600_000;

/** The wait after so many failures in a row (subscriptions.md §2.5). Ms. */
const backOff = (failures: number): number =>
  Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 20), LONGEST_MS);

/** Whether it is changed again soon. A removal that the seller has refused is tried once a day. */
export const isOpen = ({ subscriptions }: SubscriptionSet): boolean =>
  subscriptions.some(
    ({ state, reason }) => state === 'pending' || (state === 'removing' && reason === undefined),
  );

/**
 * How long a set is left alone, counted from the failures in a row before; undefined: it is not looked at any more.
 * @param failure of this look: the wait that the seller asks for, if any.
 */
export function waitOf(
  set: SubscriptionSet,
  failure: { readonly askedMs: number | undefined } | undefined,
): { readonly failures: number; readonly waitMs: number | undefined } {
  // Of an agent a look would send a set without the lost one, which no seller is to take for the change.
  const left = set.account === undefined ? ['refused', 'lost'] : ['refused'];
  const isWatched = set.subscriptions.some(({ state }) => !left.includes(state));
  if (!failure && !isOpen(set) && !set.subscriptions.some(isMoving))
    return { failures: 0, waitMs: isWatched ? DAY_MS : undefined };
  const failures = (set.failures ?? 0) + 1;
  return { failures, waitMs: isWatched ? (failure?.askedMs ?? backOff(failures)) : undefined };
}

/** Whether the seller has an entry of others no more that it had before. */
export function gone(
  before: readonly Entry[],
  after: readonly Entry[],
  ours: SubscriptionSet,
): readonly string[] {
  const there = new Set(after.map(({ subscriber_id: id }) => id));
  const own = new Set(ours.subscriptions.map(({ subscriberId }) => subscriberId));
  return before.map(({ subscriber_id: id }) => id).filter((id) => !there.has(id) && !own.has(id));
}

/** The owner's account object of a set; undefined: it is of the agent. */
export const accountIn = ({ account }: SubscriptionSet): JsonObject | undefined =>
  account === undefined ? undefined : (storedObject(account) as JsonObject);
