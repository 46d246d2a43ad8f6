// Finds and creates the webhook URLs of the subscriptions of one account or agent (subscriptions.md §2.3, §2.9). Called
// when a subscription set is changed.
import type { RegistrationRows } from '../../stores/store.ts';
import { isSameUrl } from '../../windows/told.ts';
import { type OwnRoutes, ownRoutesIn } from '../told/own-routes.ts';
import { givenAt } from '../told/url-row.ts';
import type { Route, Routes } from '../routes.ts';
import { type SetRoutes, urlOf } from './entries.ts';
import type { Entry } from './account-reading.ts';
import { type Held, type HoldContext, whileHeld } from './hold.ts';
import { textMember } from '../../codec/members.ts';
import { isOpen } from './set-states.ts';
import { type Form, type Subscription, type SubscriptionSet, unmoved } from './set-row.ts';

export interface RoutesContext extends HoldContext {
  readonly routes: Pick<Routes, 'routeOf' | 'routeAt' | 'ours'>;
}

export interface WithRoutes {
  readonly set: SubscriptionSet;
  readonly routes: SetRoutes;
}

/**
 * Returns the set with the routes (URLs with credentials) of its subscriptions. The routes are stored before the seller
 * is given a URL (subscriptions.md §3.2). A subscription that is to be sent gets a new URL if its former one is no
 * longer served, or was retired.
 * @returns undefined if another process has reserved the set by now.
 */
export async function withRoutes(
  context: RoutesContext,
  held: Held,
  set: SubscriptionSet,
): Promise<WithRoutes | undefined> {
  const { routes } = context;
  const found = await knownRoutes(context, held, set);
  const add = async (...of: Parameters<Routes['routeOf']>): Promise<Route> => {
    const route = await routes.routeOf(...of);
    found.set(route.route, route);
    return route;
  };
  const anew = new Map<Subscription['ref'], Route>();
  for (const one of await unsendable(context, { set, routes: found })) {
    anew.set(one.ref, await add(set.seller, one.scheme));
  }
  for (const { move, scheme, base } of set.subscriptions) {
    if (move?.state === 'waiting') await add(set.seller, move.to.scheme ?? scheme, move.to.base ?? base);
  }
  if (anew.size === 0) return { set, routes: found };
  const is = await whileHeld(context, held, (now) => ({
    set: { ...now, subscriptions: now.subscriptions.map((one) => toldAnew(one, anew.get(one.ref))) },
  }));
  return is && { set: is.set, routes: found };
}

/**
 * Returns the routes of the wanted and of the latest active URLs of the subscriptions, by name. Routes whose
 * credentials were deleted are left out.
 */
async function knownRoutes(
  { routes }: RoutesContext,
  { agentUrl }: Held,
  { subscriptions }: SubscriptionSet,
): Promise<Map<string, Route>> {
  const found = new Map<string, Route>();
  for (const form of subscriptions.flatMap((one) => [one, ...(one.last ? [one.last] : [])])) {
    const route = found.has(form.route) ? undefined : await routes.routeAt(form, agentUrl);
    if (route) found.set(form.route, route);
  }
  return found;
}

/**
 * Returns the subscriptions that need a new URL before they can be sent. For an agent, active ones are included,
 * because each change sends all subscriptions.
 */
async function unsendable(
  { registrations, hashes }: RoutesContext,
  { set, routes }: WithRoutes,
): Promise<readonly Subscription[]> {
  const isGone = (one: Form): boolean => urlOf(one, routes) === undefined;
  return registrations.run(set.seller.agentUrl, (rows) =>
    set.subscriptions.filter((one) => {
      if (one.state === 'active') return set.account === undefined && isGone(one);
      const isRetired = givenAt(rows, one, hashes)?.retiredAt !== undefined;
      return one.state === 'pending' && (isGone(one) || isRetired);
    }),
  );
}

function toldAnew(one: Subscription, told: Route | undefined): Subscription {
  if (!told) return one;
  const { base, route } = told;
  return { ...one, base, route };
}

/**
 * Returns the routes in `known`, and those of the entries that have credentials at a URL of this application. Such an
 * entry's subscription may be in another set.
 */
export async function withEntryRoutes(
  { routes }: Pick<RoutesContext, 'routes'>,
  agentUrl: string,
  known: SetRoutes,
  entries: readonly Entry[],
): Promise<SetRoutes> {
  const all = new Map(known);
  for (const entry of entries) {
    const url =
      entry['authentication'] === undefined ? undefined : routes.ours(textMember(entry, 'url') ?? '');
    const route = url && !all.has(url.route) ? await routes.routeAt(url, agentUrl) : undefined;
    if (route?.authentication) all.set(route.route, route);
  }
  return all;
}

/**
 * Returns the set after the waiting moves of its subscriptions began: these subscriptions have the new URL and are
 * `pending` (subscriptions.md §2.9). The set stays unchanged while another change of it is open. Must run within a
 * transaction of the store.
 */
export function sentElsewhere(
  { hashes }: Pick<RoutesContext, 'hashes'>,
  { set, routes }: WithRoutes,
  rows: RegistrationRows,
  now: number,
): SubscriptionSet {
  if (isOpen(set)) return set;
  const own = ownRoutesIn(rows);
  return {
    ...set,
    subscriptions: set.subscriptions.map((one) => {
      const form = one.state === 'active' ? formThere(one, own) : undefined;
      const given = form && givenAt(rows, form, hashes);
      // A subscription without a usable new URL stays as it is. If another process has just changed the routes, the
      // next check moves the subscription.
      if (!form || !given || given.retiredAt !== undefined || urlOf(form, routes) === undefined) return one;
      return isSameUrl(form, one) && form.scheme === one.scheme ? unmoved(one) : sentAs(one, form, now);
    }),
  };
}

/**
 * Returns the form (URL, scheme and event types) that a subscription gets by its move. Undefined if no move is waiting,
 * or while the credentials of the target URL are being renewed.
 */
function formThere({ move, ...one }: Subscription, own: OwnRoutes): Form | undefined {
  if (move?.state !== 'waiting') return undefined;
  const { base = one.base, scheme = one.scheme } = move.to;
  const { random: route, next } = own[scheme] ?? {};
  return route === undefined || next ? undefined : { eventTypes: one.eventTypes, base, route, scheme };
}

function sentAs({ move, ...one }: Subscription, form: Form, now: number): Subscription {
  return {
    ...one,
    ...form,
    state: 'pending',
    since: now,
    ...(move && { move: { to: move.to, state: 'under_way' } }),
  };
}
