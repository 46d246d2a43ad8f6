// Checks the arguments of `subscribe`, `unsubscribe` and `subscriptions.list` before anything is stored or sent. A
// wrong argument is a RegistrationError `request_invalid`.
import { requireUrl } from '../../config/public-url.ts';
import { flag, oneOf, onlyKnown, text, wholeNumber } from '../../config/validate.ts';
import { ConfigError } from '../../shared/errors.ts';
import { isAbortSignal, isPlainObject } from '../../shared/realms.ts';
import { accountJson, checkedRef, type JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import { requireAgentUrl, SELLER } from '../option-checks.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { checked, requireSeller } from '../seller.ts';
import { LISTED } from '../list-operations.ts';
import type { SubscriptionState } from './set-row.ts';
import type {
  SetChange,
  SubscriptionName,
  SubscriptionQuery,
  SubscriptionRemoval,
  SubscriptionRequest,
} from './subscription-types.ts';

const CHANGE: Readonly<Record<keyof SetChange, true>> = { exclusive: true, credentials: true, signal: true };
const NAME: Readonly<Record<keyof SubscriptionName, true>> = { agentUrl: true, account: true, ref: true };
const REQUEST: Readonly<Record<keyof SubscriptionRequest, true>> = {
  ...SELLER,
  ...CHANGE,
  account: true,
  ref: true,
  eventTypes: true,
  scheme: true,
};
const QUERY: Readonly<Record<keyof SubscriptionQuery, true>> = {
  agentUrl: true,
  state: true,
  limit: true,
  after: true,
};
const STATES: readonly SubscriptionState[] = ['pending', 'active', 'refused', 'lost', 'removing'];

/** The largest number of event types of one subscription; the protocol has 21. */
const MOST_TYPES = 32;
const TYPE = /^[\w.-]{1,64}$/;
const MOST_LISTED = 1000;

/**
 * Checks the request of `subscribe`.
 * @returns the request, with plain copies of all that is stored and sent.
 * @throws RegistrationError
 */
export function checkedSubscription(
  request: SubscriptionRequest,
  allowLoopback: boolean,
): SubscriptionRequest {
  checked(() => onlyKnown('subscribe', request, REQUEST));
  requireSeller(request, request.scheme ?? 'signature', allowLoopback);
  return { ...request, ...checkedChange(request), ...checkedName(request), eventTypes: typesIn(request) };
}

/** Checks the request of `unsubscribe`, and returns it with plain copies of its objects. @throws RegistrationError */
export function checkedRemoval(of: SubscriptionRemoval, allowLoopback: boolean): SubscriptionRemoval {
  checked(() => {
    onlyKnown('unsubscribe', of, { ...NAME, ...CHANGE });
    requireUrl('agentUrl', of.agentUrl, allowLoopback);
  });
  return { agentUrl: of.agentUrl, ...checkedChange(of), ...checkedName(of) };
}

/** Checks the query of `subscriptions.list`. @throws RegistrationError */
export function requireSubscriptionQuery(query: SubscriptionQuery): void {
  checked(() => {
    onlyKnown('subscriptions.list', query, QUERY);
    oneOf('state', query.state, STATES);
    wholeNumber('limit', query.limit, LISTED, 1, MOST_LISTED);
    if (query.agentUrl !== undefined) requireAgentUrl(query.agentUrl);
    if (query.after !== undefined) text('after', query.after);
  });
}

function checkedName({ account, ref }: Pick<SubscriptionName, 'account' | 'ref'>): {
  readonly ref: string;
  readonly account?: JsonObject;
} {
  if (ref === undefined) {
    throw new RegistrationError(
      'request_invalid',
      "ref: is missing. Give your own name for it: ref: 'creatives'.",
    );
  }
  checked(() => text('ref', ref));
  return { ref: checkedRef(ref), ...(account !== undefined && { account: namedAccount(account) }) };
}

/**
 * Returns a plain copy of the account.
 * @throws RegistrationError, also for an account without members, because that would match every account.
 */
function namedAccount(given: JsonObject): JsonObject {
  const account = storedObject(accountJson(given)) as JsonObject;
  if (Object.keys(account).length > 0) return account;
  throw new RegistrationError(
    'request_invalid',
    'account: has no member. Give the account as the seller knows it, e.g. { account_id }; for the whole agent leave it out.',
  );
}

function checkedChange({ exclusive, credentials, signal }: SetChange): SetChange {
  checked(() => {
    flag('exclusive', exclusive);
    if (signal !== undefined && !isAbortSignal(signal)) {
      throw new ConfigError('signal: is not an AbortSignal. Give one, or leave it out.');
    }
    if (credentials !== undefined && !isPlainObject(credentials)) {
      throw new ConfigError('credentials: is not an object. Give the credentials by subscriber_id.');
    }
    for (const [id, given] of Object.entries(credentials ?? {}))
      text(`credentials[${JSON.stringify(id)}]`, given);
  });
  return {
    ...(exclusive === true && { exclusive }),
    ...(credentials && { credentials: { ...credentials } }),
    ...(signal && { signal }),
  };
}

function typesIn({ eventTypes }: Pick<SubscriptionRequest, 'eventTypes'>): readonly string[] {
  const given: readonly unknown[] = Array.isArray(eventTypes) ? eventTypes : [];
  const wrong = given.find((type) => typeof type !== 'string' || !TYPE.test(type));
  if (given.length > 0 && given.length <= MOST_TYPES && wrong === undefined && !given.includes(undefined)) {
    return [...new Set(given as readonly string[])];
  }
  const which = wrong === undefined ? '' : ` ${JSON.stringify(wrong)} is none.`;
  throw new RegistrationError(
    'request_invalid',
    `eventTypes: is not a list of 1 to ${MOST_TYPES} notification types.${which} Give their exact names, e.g. ['creative.status_changed'].`,
  );
}
