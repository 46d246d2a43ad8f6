// Answers webhook challenges (a seller's check that the receiver controls its URL), and finds the subscription of an
// event (subscriptions.md §3, §5.1). Used by the receiver through `createReceiver({ registrations })`.
import { putBounded } from '../../shared/bounded.ts';
import { quoted } from '../../codec/printable.ts';
import type { WebhookChallenge } from '../../events/challenge.ts';
import type { EventRegistrations } from '../../events/event-registration.ts';
import type { StoreRegistrations } from '../../stores/store.ts';
import { soon } from '../operation-rows.ts';
import {
  type Form,
  isSameSet,
  setAt,
  setNameIn,
  type Subscription,
  type SubscriptionSet,
} from './set-row.ts';

export type SubscriptionAnswers = Required<Pick<EventRegistrations, 'answersChallenge' | 'subscriptionRef'>>;

/**
 * The most subscriber ids whose `ref` is cached. A cached `ref` stays valid, because an id is stored with its `ref`
 * before any seller learns the id.
 */
const MOST_KEPT = 10_000;

export function subscriptionAnswers(registrations: StoreRegistrations): SubscriptionAnswers {
  const refs = new Map<string, string | undefined>();
  const setOf = async (sender: string, subscriberId: string): Promise<SubscriptionSet | undefined> => {
    const name = setNameIn(subscriberId);
    return name === undefined ? undefined : soon(registrations.run(sender, (rows) => setAt(rows, name)));
  };
  return {
    answersChallenge: async (challenge, sender) => {
      const subscriberId = challenge.subscriber_id ?? '';
      const set = await setOf(sender, subscriberId);
      return set && (noReason(challenge, set, subscriptionIn(set, subscriberId)) ?? true);
    },
    subscriptionRef: async (sender, subscriberId) => {
      if (setNameIn(subscriberId) === undefined) return undefined;
      const key = `${subscriberId} ${sender}`;
      if (refs.has(key)) return refs.get(key);
      const set = await setOf(sender, subscriberId);
      const ref = set && subscriptionIn(set, subscriberId)?.ref;
      return putBounded(refs, key, ref, MOST_KEPT);
    },
  };
}

const subscriptionIn = ({ subscriptions }: SubscriptionSet, id: string): Subscription | undefined =>
  subscriptions.find(({ subscriberId }) => subscriberId === id);

/** Returns the reason to refuse a webhook challenge (subscriptions.md §3.1); undefined if the challenge is accepted. */
function noReason(
  challenge: WebhookChallenge,
  set: SubscriptionSet,
  subscription: Subscription | undefined,
): string | undefined {
  if (!subscription)
    return `subscriber_id ${quoted(challenge.subscriber_id ?? '')} is of no subscription that is kept`;
  if (subscription.state === 'removing')
    return `the subscription ${quoted(subscription.ref)} is being removed`;
  return placeReason(challenge, set) ?? formReason(challenge, subscription);
}

/**
 * Returns the reason to refuse a challenge for another account, or with the wrong scope (account or whole agent);
 * otherwise undefined.
 */
function placeReason(challenge: WebhookChallenge, set: SubscriptionSet): string | undefined {
  const { scope, account_id: accountId } = challenge;
  const isOfAccount = set.account !== undefined;
  if ((scope === 'agent') === isOfAccount) {
    const of = isOfAccount ? 'an account' : "the agent: give scope 'agent'";
    return `scope is ${quoted(scope ?? '')}, and the subscription is of ${of}`;
  }
  if (!isOfAccount) return undefined;
  if (typeof accountId !== 'string' || accountId === '') return 'account_id is missing';
  if (set.accountId === undefined || set.accountId === accountId) return undefined;
  return `account_id is ${quoted(accountId)}, and the subscription is of account ${quoted(set.accountId)}`;
}

const MODES: Readonly<Record<Form['scheme'], string>> = {
  signature: 'rfc9421',
  'HMAC-SHA256': 'HMAC-SHA256',
  Bearer: 'Bearer',
};

/**
 * Returns the reason to refuse a challenge; undefined if the challenge fits. It must have the scheme, credentials and
 * event types of the wanted subscription, or of the latest active form of that subscription.
 */
function formReason(challenge: WebhookChallenge, subscription: Subscription): string | undefined {
  const { delivery_auth: auth, event_types: types } = challenge;
  const forms = [subscription, ...(subscription.last ? [subscription.last] : [])];
  const ofMode = forms.filter(({ scheme }) => MODES[scheme] === auth?.mode);
  if (ofMode.length === 0) {
    return `delivery_auth.mode is ${quoted(auth?.mode ?? '')}, and the subscription is for ${MODES[subscription.scheme]}`;
  }
  if (!challenge.authMatches) return authReason(challenge);
  if (ofMode.some(({ eventTypes }) => isSameSet(eventTypes, types ?? []))) return undefined;
  return `event_types are ${listed(types ?? [])}, and the subscription is for ${ofMode.map(({ eventTypes }) => listed(eventTypes)).join(' or ')}`;
}

/** Returns the reason to refuse a challenge whose `mode` is right, but whose credentials are not those of this URL. */
function authReason({ delivery_auth: auth }: WebhookChallenge): string {
  if (auth?.mode === MODES.signature)
    return 'delivery_auth.mode is "rfc9421", and this URL is given for a legacy scheme';
  const given = auth?.credential_fingerprint ? 'another than' : 'absent, and not';
  return `delivery_auth.credential_fingerprint is ${given} that of the credentials given with this URL: somebody may have changed the subscription on its way`;
}

/** The most event types that a message lists, because a seller's list may have any length. */
const MOST_LISTED = 8;

/** Returns a list of names as text for a message, cut after `MOST_LISTED` names. */
function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_LISTED).map(quoted).join(', ');
  return names.length > MOST_LISTED ? `[${shown} and ${names.length - MOST_LISTED} more]` : `[${shown}]`;
}
