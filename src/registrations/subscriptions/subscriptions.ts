// Implements `subscribe`, `unsubscribe` and `list`, and runs the periodic checks of subscriptions (subscriptions.md
// §1). Loaded by `createRegistrations` when first used.
import { boundedCall } from '../../calls/bounded-call.ts';
import { quoted } from '../../codec/printable.ts';
import type { Hashes } from '../../crypto/engine.ts';
import { Fault } from '../../shared/errors.ts';
import { limited, orAborted } from '../../shared/time-limits.ts';
import type { CallSeller } from '../call-seller.ts';
import { LISTED } from '../list-operations.ts';
import { givenCaller } from '../option-checks.ts';
import { RegistrationError } from '../registrations-errors.ts';
import type { RandomBytes } from '../secrets.ts';
import { checked, requestInvalid, sellerIn } from '../seller.ts';
import { type Changed, changeSet } from './change.ts';
import { take } from './hold.ts';
import { type Offers, requireOffered } from './offers.ts';
import { type LooksContext, lookAtSets } from './set-looks.ts';
import {
  newSubscriberId,
  setAt,
  setIn,
  setName,
  type Subscription,
  type SubscriptionSet,
} from './set-row.ts';
import { accountIn } from './set-states.ts';
import { tellChange } from './subscription-news.ts';
import { checkedRemoval, checkedSubscription, requireSubscriptionQuery } from './subscription-request.ts';
import type {
  SetChange,
  SubscriptionName,
  SubscriptionPage,
  SubscriptionQuery,
  SubscriptionRemoval,
  SubscriptionRequest,
  SubscriptionSeen,
} from './subscription-types.ts';
import { isAsked, withUnwanted, withWanted } from './wanted.ts';

export interface SubscriptionsContext extends Omit<LooksContext, 'call' | 'limitMs' | 'hashes'> {
  readonly call: CallSeller | undefined;
  readonly hashes: Pick<Hashes, 'sha256' | 'sha256Hex'>;
  readonly randomBytes: RandomBytes;
  readonly allowLoopback: boolean;
}

export interface Subscriptions {
  readonly subscribe: (request: SubscriptionRequest) => Promise<SubscriptionSeen>;
  readonly unsubscribe: (of: SubscriptionRemoval) => Promise<void>;
  readonly list: (query?: SubscriptionQuery) => Promise<SubscriptionPage>;
  /** Checks subscription sets that are due, until the signal aborts; resolves when the running checks have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

/** The share of a subscription set's reservation time that a call to the seller may take. */
const LIMIT_SHARE = 0.75;
/** The longest wait between two tries to reserve a subscription set that another process has reserved. Ms. */
const TRY_MS = 500;
/** The most times that a change is begun, if other processes take over the subscription set before the change ends. */
const MOST_ROUNDS = 5;
/** The time limit for asking a seller about its operations and the event types that it offers. Ms. */
const OFFERS_MS = 20_000;

export function subscriptionsOf(context: SubscriptionsContext): Subscriptions {
  const { registrations, hashes, newId, randomBytes, allowLoopback, sleep, holdMs, raise } = context;

  const changing = (who: string): LooksContext => ({
    ...context,
    call: checked(() => givenCaller(who, context.call)),
    limitMs: Math.ceil(holdMs * LIMIT_SHARE),
  });

  /**
   * Reserves a subscription set, waiting while another process has it, and changes the set at the seller. Returns
   * undefined if `want` finds that nothing has to be done.
   */
  const change = async (
    by: LooksContext,
    of: SubscriptionName & SetChange,
    want: (set: SubscriptionSet | undefined, now: number) => SubscriptionSet | undefined,
  ): Promise<Changed | undefined> => {
    const { agentUrl, account, ref, credentials = {}, signal = new AbortController().signal } = of;
    const held = { agentUrl, name: setName(account, hashes), by: newId() };
    for (let rounds = 0; rounds < MOST_ROUNDS;) {
      signal.throwIfAborted();
      const found = await take(context, held, want);
      if (!found) return undefined;
      if ('waitMs' in found) {
        await sleep(Math.min(found.waitMs, TRY_MS), signal);
        continue;
      }
      const changed = await changeSet(by, held, found.set, { asked: ref, credentials, signal });
      if (changed) {
        tellChange(raise, held, changed, ref);
        return changed;
      }
      rounds += 1;
    }
    throw new Fault(
      'overloaded',
      `${ref}: other processes took the set ${MOST_ROUNDS} times while it was changed. They finish it.`,
    );
  };

  const subscribe = async (given: SubscriptionRequest): Promise<SubscriptionSeen> => {
    const request = checkedSubscription(given, allowLoopback);
    requireExclusive('subscribe', request);
    const { agentUrl, account, ref, scheme = 'signature' } = request;
    const by = changing('registrations.subscribe');
    const name = setName(account, hashes);
    const before = await registrations.run(agentUrl, (rows) => namedIn(setAt(rows, name), ref));
    if (!before || !isAsked(before, request)) await requireTypes(by.call, request);
    const { base, route } = await context.routes.routeOf(sellerIn(request), scheme);
    const anew = { subscriberId: newSubscriberId(name, randomBytes), base, route };
    const changed = await change(by, request, (set, now) => withWanted(set, request, anew, now));
    return outcome(changed, ref);
  };

  const unsubscribe = async (of: SubscriptionRemoval): Promise<void> => {
    const removal = checkedRemoval(of, allowLoopback);
    requireExclusive('unsubscribe', removal);
    const by = changing('registrations.unsubscribe');
    const changed = await change(by, removal, (set, now) => withUnwanted(set, removal.ref, now));
    if (changed?.error !== undefined && namedIn(changed.set, removal.ref)) throw changed.error;
  };

  return {
    subscribe,
    unsubscribe,
    list: async (query = {}) => {
      requireSubscriptionQuery(query);
      const { agentUrl, state, limit = LISTED, after } = query;
      const page = await registrations
        .page({
          kind: 'subscription',
          limit,
          ...(agentUrl !== undefined && { sender: agentUrl }),
          ...(after !== undefined && { after }),
        })
        .catch((error: unknown) => {
          throw requestInvalid(error);
        });
      const subscriptions = page.rows.flatMap((row) => {
        const set = setIn(row);
        return set.subscriptions
          .filter((one) => state === undefined || one.state === state)
          .map((one) => seenOf(set, one));
      });
      return { subscriptions, ...(page.next !== undefined && { next: page.next }) };
    },
    run: (stopping) => lookAtSets(changing('registrations.start'), stopping),
  };
}

const namedIn = (set: SubscriptionSet | undefined, ref: string): Subscription | undefined =>
  set?.subscriptions.find((one) => one.ref === ref);

/**
 * Returns the requested subscription after a change. @throws the error of the change, unless the subscription is
 * active.
 */
function outcome(changed: Changed | undefined, ref: string): SubscriptionSeen {
  const one = namedIn(changed?.set, ref);
  if (changed?.error !== undefined && one?.state !== 'active') throw changed.error;
  if (changed && one) return seenOf(changed.set, one);
  throw new RegistrationError(
    'request_invalid',
    `ref: ${quoted(ref)} was unsubscribed, or its seller forgotten, while it was set. Subscribe again.`,
  );
}

/**
 * Checks, before anything is written, that the seller offers the requested event types.
 * @throws RegistrationError `event_types_not_offered`
 */
async function requireTypes(
  call: CallSeller,
  { agentUrl, account, eventTypes, ref, signal = new AbortController().signal }: SubscriptionRequest,
): Promise<void> {
  const limit = { ms: OFFERS_MS, reason: `the seller did not say what it offers within ${OFFERS_MS} ms` };
  const asked = limited(limit, signal, (within) =>
    orAborted(offersOf(call, agentUrl, { signal: within, ref }), within),
  );
  // If the seller cannot be asked, its event types are unknown here. The seller itself then refuses types that it
  // lacks.
  const offers = await asked.catch(() => ({ names: undefined, capabilities: undefined }));
  signal.throwIfAborted();
  requireOffered(account ? 'account' : 'agent', eventTypes, offers);
}

/** Asks a seller for the names of its operations and, if it has `get_adcp_capabilities`, for its capabilities. */
async function offersOf(
  call: CallSeller,
  agentUrl: string,
  how: { readonly signal: AbortSignal; readonly ref: string },
): Promise<Offers> {
  const names = await call.operations?.(agentUrl, how);
  const isAsked = names?.includes('get_adcp_capabilities') === true;
  const capabilities = isAsked
    ? await boundedCall(call)(agentUrl, 'get_adcp_capabilities', {}, how).catch(() => undefined)
    : undefined;
  return { names, capabilities };
}

/** Checks that a request for the whole agent has `exclusive: true`. @throws RegistrationError `exclusive_required` */
function requireExclusive(
  method: string,
  { account, exclusive }: Pick<SubscriptionRequest, 'account' | 'exclusive'>,
) {
  if (account !== undefined || exclusive === true) return;
  throw new RegistrationError(
    'exclusive_required',
    `${method}: the seller cannot be asked which subscriptions of the whole agent there are, and this replaces them all. If nobody else has any, give exclusive: true; for those of an account give account.`,
  );
}

function seenOf(set: SubscriptionSet, one: Subscription): SubscriptionSeen {
  const account = accountIn(set);
  const { ref, subscriberId, eventTypes, scheme, state, reason, since } = one;
  return {
    agentUrl: set.seller.agentUrl,
    ...(account && { account }),
    ...(set.accountId !== undefined && { accountId: set.accountId }),
    ref,
    subscriberId,
    eventTypes,
    scheme,
    state,
    ...(reason !== undefined && { reason }),
    since,
  };
}
