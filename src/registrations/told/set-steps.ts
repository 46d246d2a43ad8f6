// Plans and stores moves of subscriptions to another URL. The target is stored in the row of the subscription set, and
// the set's next change carries out the move (told.md §3.6).
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { isSameUrl, type ToldUrl } from '../../windows/told.ts';
import { accountJson, type JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import {
  isMoving,
  setIn,
  type SetMove,
  setName,
  setRow,
  type Subscription,
  type SubscriptionSet,
} from '../subscriptions/set-row.ts';
import { accountIn } from '../subscriptions/set-states.ts';
import { type How, type StepNeed, stepOf, type StepOf, unkept, whyNot } from './move-plan.ts';
import { wakeTurns } from './move-row.ts';
import type { MoveState, MoveStep, MoveUrl } from './move-types.ts';
import { newestOf, untilTold } from './own-routes.ts';

/** Returns the plan's steps for the subscriptions stored in one row. */
export function setSteps(row: RegistrationRow, how: How): readonly MoveStep[] {
  const set = setIn(row);
  const account = accountIn(set);
  return set.subscriptions.flatMap((one) => {
    const of = {
      agentUrl: set.seller.agentUrl,
      subscription: { ref: one.ref, ...(account && { account }) },
    };
    return stepIn(of, one, how) ?? [];
  });
}

function stepIn(of: StepOf, one: Subscription, how: How): MoveStep | undefined {
  const need = needOf(one, how);
  if (isMoving(one)) return stepOf(of, need, stateOf(one, how), one.reason);
  const isSigned = [one, one.last ?? one].every(({ scheme }) => scheme === 'signature');
  if (need.kind === 'nothing' || (how.to.renew && isSigned)) return undefined;
  if (need.kind === 'unknown') return stepOf(of, need, 'unknown');
  const why = whyNot(how, needOf(one, { ...how, isDue: () => false }));
  return stepOf(of, need, stateOf(one, how), why ?? one.move?.reason ?? one.reason);
}

function stateOf(one: Subscription, how: How): MoveState {
  if (one.move) return one.move.state;
  return one.state === 'pending' && isAt(one, targetOf(one, how)) ? 'under_way' : 'planned';
}

/**
 * The URL that a subscription should move to. `route` is the seller's newest route of the scheme; absent: there is none
 * yet.
 */
type Place = Omit<ToldUrl, 'route'> & { readonly route?: string | undefined };

const targetOf = (one: ToldUrl, { to, routes }: How): Place => {
  const { base = one.base, scheme = one.scheme } = to;
  return { base, scheme, route: newestOf(routes[scheme]) };
};

const isAt = (one: ToldUrl, { route, ...place }: Place): boolean =>
  route !== undefined && isSameUrl(one, { ...place, route }) && one.scheme === place.scheme;

const urlOf = ({ base, scheme }: Place): MoveUrl => ({ channel: 'subscription', baseUrl: base, scheme });

const NOTHING: StepNeed = { kind: 'nothing' };

/** Returns the change that a subscription needs so that its events come only to the target URL. */
function needOf(one: Subscription, how: How): StepNeed {
  const { state, last } = one;
  if (state === 'removing') return NOTHING;
  if (state === 'refused' || state === 'lost') return unknownNeed(one, state === 'lost' ? one : last, how);
  const target = targetOf(one, how);
  const isThere = isAt(one, target) && isAt(last ?? one, target);
  if (isThere && !how.isDue(target.scheme)) return NOTHING;
  return { kind: 'update', from: [urlOf(last ?? one)], to: [urlOf(target)] };
}

function unknownNeed({ state, reason = '' }: Subscription, is: ToldUrl | undefined, how: How): StepNeed {
  if (!is || isAt(is, targetOf(is, how))) return NOTHING;
  return {
    kind: 'unknown',
    from: [urlOf(is)],
    reason: `the subscription is ${state} (${reason}), and nothing is sent for it unasked. Subscribe again`,
  };
}

/**
 * Stores the move of a subscription, unless the subscription needs no move. @returns the plan's step with its new
 * state.
 */
export function keptSet(
  rows: RegistrationRows,
  of: StepOf & Required<Pick<MoveStep, 'subscription'>>,
  how: How,
  now: number,
  hashes: Hashes,
): MoveStep {
  const { account, ref } = of.subscription;
  const name = setName(account && (storedObject(accountJson(account)) as JsonObject), hashes);
  const row = rows.get('subscription', name);
  const one = row && setIn(row).subscriptions.find((is) => is.ref === ref);
  if (!row || !one) return stepOf(of, NOTHING, 'done');
  const need = needOf(one, { ...how, isDue: () => false });
  if (need.kind === 'unknown') return stepOf(of, need, 'unknown');
  if (need.kind === 'nothing' && !isMoving(one)) return unkept(of, needOf(one, how));
  const state = stateOf(one, how) === 'under_way' ? 'under_way' : 'waiting';
  // A pending subscription that already has the target URL needs no stored move, because the next change of its set
  // sends that URL.
  if (state === 'waiting' || one.move) keep(rows, row, one, { state, how, now });
  return stepOf(of, need, state);
}

function keep(
  rows: RegistrationRows,
  row: RegistrationRow,
  one: Subscription,
  { state, how, now }: { readonly state: SetMove['state']; readonly how: How; readonly now: number },
): void {
  const set = setIn(row);
  const { base, scheme } = how.to;
  const to = { ...(base !== undefined && { base }), ...(scheme !== undefined && { scheme }) };
  const route = how.routes[scheme ?? one.scheme];
  const from = now + (route ? untilTold(route, now) : 0);
  // If a process is changing the set now, `dueAt` stays: that process finds the new target when it finishes.
  const isBusy = set.hold !== undefined || state === 'under_way';
  const dueAt = isBusy ? row.dueAt : Math.min(row.dueAt ?? from, from);
  rows.save(setRow(row.id, withMove(set, one.ref, { to, state }), dueAt));
  wakeTurns(rows, row.sender, now);
}

const withMove = (set: SubscriptionSet, ref: string, move: SetMove): SubscriptionSet => ({
  ...set,
  subscriptions: set.subscriptions.map((one) => (one.ref === ref ? { ...one, move } : one)),
});
