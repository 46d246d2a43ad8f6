// Builds the subscription entries (`notification_configs`) that are sent to a seller, and compares the seller's entries
// with the wanted ones (subscriptions.md §2.3, §2.7). Called when subscriptions are changed, and when the URLs at
// sellers are checked.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import { quoted } from '../../codec/printable.ts';
import type { Json } from '../answer-json.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { LEGACY } from '../route-kind.ts';
import type { Route } from '../routes.ts';
import type { Entry } from './account-reading.ts';
import { type Form, isSameSet, type Subscription, type SubscriptionSet } from './set-row.ts';

/** The most subscription entries that a seller accepts per account or agent. */
export const MOST_ENTRIES = 16;

/** The seller's routes (webhook URLs with their credentials), by name. */
export type SetRoutes = ReadonlyMap<string, Route>;

/**
 * Returns the entries to send for an account: the seller's entries, with this application's in their wanted form.
 * @throws RegistrationError if another subscriber's entry cannot be sent back, or there are too many entries.
 */
export function accountEntries(
  { subscriptions }: SubscriptionSet,
  read: readonly Entry[],
  routes: SetRoutes,
  credentials: Readonly<Record<string, string>>,
): readonly Json[] {
  const ours = new Set(subscriptions.map(({ subscriberId }) => subscriberId));
  const replaced = new Set(subscriptions.filter(isChanged).map(({ subscriberId }) => subscriberId));
  const kept = read
    .filter(({ subscriber_id: id }) => !replaced.has(id))
    .map((entry) => asItWas(entry, (scheme) => credentialsOf(entry, scheme, ours, routes, credentials)));
  const wanted = subscriptions
    .filter(({ state }) => state === 'pending')
    .map((one) => wantedEntry(one.subscriberId, one, routes));
  return withinLimit([...kept, ...wanted]);
}

/**
 * Returns the entries to send for the whole agent. A subscription that the seller refused keeps its latest active
 * entry, if it had one. @throws RegistrationError `set_full`
 */
export function agentEntries({ subscriptions }: SubscriptionSet, routes: SetRoutes): readonly Json[] {
  return withinLimit(
    subscriptions.flatMap((one) => {
      const form = formAtAgent(one);
      return form ? [wantedEntry(one.subscriberId, form, routes)] : [];
    }),
  );
}

function formAtAgent(one: Subscription): Form | undefined {
  if (one.state === 'pending' || one.state === 'active') return one;
  return one.state === 'refused' ? one.last : undefined;
}

const isChanged = ({ state }: Subscription): boolean => state === 'pending' || state === 'removing';

/** Returns the entries if there are at most `MOST_ENTRIES`. @throws RegistrationError `set_full` */
function withinLimit(entries: readonly JsonObject[]): readonly Json[] {
  // The cast is safe, because a later check before sending makes sure that entries from a seller are valid JSON.
  if (entries.length <= MOST_ENTRIES) return entries as readonly Json[];
  throw new RegistrationError(
    'set_full',
    `eventTypes: the seller keeps ${MOST_ENTRIES} subscriptions of an account or an agent, and these would be ${entries.length}. Nothing was sent. Put more event types into one subscription, or unsubscribe.`,
  );
}

/** Returns the URL at which a subscription was requested; undefined if this process no longer serves that URL. */
export const urlOf = ({ base, route }: Form, routes: SetRoutes): string | undefined =>
  routes.get(route)?.urls.find((one) => one.slice(0, one.lastIndexOf('/')) === base);

function wantedEntry(subscriberId: string, form: Form, routes: SetRoutes): JsonObject {
  const { eventTypes, route } = form;
  const { authentication } = routes.get(route) ?? {};
  const url = urlOf(form, routes);
  if (url === undefined) throw new Error(`The URL of ${subscriberId} is served no more.`);
  return {
    subscriber_id: subscriberId,
    url,
    event_types: eventTypes,
    ...(authentication && {
      authentication: { schemes: [authentication.scheme], credentials: authentication.credentials },
    }),
    active: true,
  };
}

/**
 * Returns an entry as the seller shows it, with its credentials added, because sellers hide credentials.
 * @param secretOf returns the entry's credentials; undefined if they are unknown.
 * @throws RegistrationError `foreign_credentials` if the credentials are unknown; `request_invalid` if the entry has a
 *   number that cannot be sent back exactly.
 */
function asItWas(entry: Entry, secretOf: (scheme: unknown) => string | undefined): JsonObject {
  requireExact(entry);
  const authentication = present(entry, 'authentication');
  if (authentication === undefined) return entry;
  const credentials = secretOf(schemeIn(entry));
  if (credentials !== undefined && isJsonObject(authentication)) {
    return { ...entry, authentication: { ...authentication, credentials } };
  }
  const id = quoted(entry.subscriber_id);
  throw new RegistrationError(
    'foreign_credentials',
    `credentials: the subscription ${id} of somebody else has credentials, which the seller never shows, so it cannot be sent back as it was. Nothing was sent. Give them: credentials: { ${id}: '…' }. Where it is one of yours, somebody has changed it: subscribe to it again first.`,
  );
}

/**
 * The limit of exact integers: JavaScript may have rounded a number of this size or more when the seller's answer was
 * parsed.
 */
const INEXACT = 2 ** 53;

/** Refuses an entry with a number that cannot be sent back exactly. @throws RegistrationError `request_invalid` */
function requireExact(entry: Entry): void {
  const isInexact = (value: unknown): boolean =>
    typeof value === 'number'
      ? !(Math.abs(value) < INEXACT)
      : typeof value === 'object' && value !== null && Object.values(value).some(isInexact);
  if (!isInexact(entry)) return;
  throw new RegistrationError(
    'request_invalid',
    `account: the subscription ${quoted(entry.subscriber_id)} of somebody else has a number that JavaScript cannot hold exactly, so it cannot be sent back as it was. Nothing was sent. Ask its owner, or the seller, to write it as a string.`,
  );
}

/**
 * Returns the credentials of an entry; undefined if unknown. An entry with a URL of this application has the
 * credentials of that URL, whatever its `subscriber_id`. At any other URL this application's credentials are never
 * used, because the seller would send a bearer token there.
 */
function credentialsOf(
  entry: Entry,
  scheme: unknown,
  ours: ReadonlySet<string>,
  routes: SetRoutes,
  given: Readonly<Record<string, string>>,
): string | undefined {
  const { subscriber_id: id } = entry;
  const own = [...routes.values()].find(
    ({ urls, authentication }) =>
      authentication?.scheme === scheme && isAmong(textMember(entry, 'url'), urls),
  );
  if (own || ours.has(id)) return own?.authentication?.credentials;
  return Object.hasOwn(given, id) ? given[id] : undefined;
}

/** Returns the scheme of an entry's `authentication`; undefined if it has none. */
function schemeIn(entry: JsonObject): unknown {
  const authentication = present(entry, 'authentication');
  if (!isJsonObject(authentication)) return authentication;
  const { schemes } = authentication;
  return Array.isArray(schemes) ? (schemes as readonly unknown[])[0] : schemes;
}

/**
 * Returns the difference between the seller's entry and the wanted subscription, in words; undefined if they agree.
 * @param url the wanted URL; undefined counts as a difference.
 */
export function differs(
  entry: JsonObject | undefined,
  { scheme, eventTypes }: Pick<Form, 'scheme' | 'eventTypes'>,
  url: string | undefined,
): string | undefined {
  if (!entry) return 'it is not among the notification_configs of the account';
  if ((present(entry, 'active') ?? true) !== true) return 'the seller has paused it (active: false)';
  if (url === undefined || !isAmong(textMember(entry, 'url'), [url]))
    return 'the seller has another url of it';
  const wanted = scheme === 'signature' ? undefined : LEGACY[scheme];
  if (schemeIn(entry) !== wanted) return 'the seller has another authentication of it';
  const types = present(entry, 'event_types');
  const isAsked = Array.isArray(types) && isSameSet(types as readonly string[], eventTypes);
  return isAsked ? undefined : 'the seller has other event_types of it';
}

const isAmong = (is: string | undefined, urls: readonly string[]): boolean =>
  urls.some((url) => hrefOf(url) === hrefOf(is));

const hrefOf = (url = ''): string => (URL.canParse(url) ? new URL(url).href : url);
