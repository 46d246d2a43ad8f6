// Checks that a seller offers the event types of a subscription, for an account or for the whole agent
// (subscriptions.md §2.8). Called by `subscribe` before anything is stored or sent.
import { isJsonObject, type JsonObject, present } from '../../codec/members.ts';
import { sellerText } from '../answer.ts';
import { capabilitiesIn } from '../capabilities.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { SYNC_ACCOUNTS, SYNC_AGENT } from './sync-answers.ts';

export type Channel = 'account' | 'agent';

/** The facts about a seller that tell which event types the seller offers. */
export interface Offers {
  /** The names of the seller's operations; undefined: the seller gave no list. */
  readonly names: readonly string[] | undefined;
  /** The seller's answer to `get_adcp_capabilities`; undefined: the seller was not asked, or gave no usable answer. */
  readonly capabilities: unknown;
}

const OPERATION: Readonly<Record<Channel, string>> = { account: SYNC_ACCOUNTS, agent: SYNC_AGENT };

/**
 * Event types that cannot be subscribed for an account, because sellers send them for a media buy or for the whole
 * agent.
 */
const NEVER_OF_ACCOUNT: ReadonlySet<string> = new Set([
  'impairment',
  'scheduled',
  'final',
  'delayed',
  'adjusted',
  'window_update',
  'capabilities.changed',
]);
const OF_AGENT: readonly string[] = ['capabilities.changed'];
const WHOLESALE = /^(?:product|signal|wholesale_feed)\./;

/** The most event types that an error message lists. */
const MOST_TOLD = 64;

/** Refuses event types that the seller does not offer. @throws RegistrationError `event_types_not_offered` */
export function requireOffered(channel: Channel, eventTypes: readonly string[], offers: Offers): void {
  const operation = OPERATION[channel];
  if (offers.names && !offers.names.includes(operation)) {
    throw notOffered(channel, eventTypes, [], `it does not have the operation ${operation}`);
  }
  const body = capabilitiesIn(offers.capabilities) ?? {};
  const { isOffered, offered } = channel === 'account' ? ofAccount(body) : ofAgent(body);
  const refused = eventTypes.filter((type) => !isOffered(type));
  if (refused.length > 0) throw notOffered(channel, refused, offered);
}

function notOffered(
  channel: Channel,
  refused: readonly string[],
  offered: readonly string[],
  why = 'it does not offer them',
): RegistrationError {
  const list = offered.slice(0, MOST_TOLD).map(sellerText).join(', ');
  const fix = list === '' ? 'Leave them out, or ask the seller.' : `It offers: ${list}.`;
  const of = channel === 'account' ? 'an account' : 'the agent';
  return new RegistrationError(
    'event_types_not_offered',
    `eventTypes: the seller has no ${refused.join(', ')} of ${of}: ${why}. Nothing was sent. ${fix}`,
  );
}

interface Offered {
  readonly isOffered: (type: string) => boolean;
  readonly offered: readonly string[];
}

const membersOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

/**
 * Returns the event types that a capability of the seller lists; undefined if it has no list, empty if `supported` is
 * false.
 */
function typesIn(capability: unknown): readonly string[] | undefined {
  if (!isJsonObject(capability)) return undefined;
  if (present(capability, 'supported') === false) return [];
  const types = present(capability, 'event_types');
  return Array.isArray(types) ? types.filter((type) => typeof type === 'string') : undefined;
}

function ofAccount(body: JsonObject): Offered {
  const own = typesIn(membersOf(body['account'])['notifications']);
  const wholesale = typesIn(body['wholesale_feed_webhooks']);
  const isUnlisted = wholesale === undefined && isJsonObject(body['wholesale_feed_webhooks']);
  const isOffered = (type: string): boolean => {
    if (NEVER_OF_ACCOUNT.has(type)) return false;
    if (own?.includes(type) || wholesale?.includes(type)) return true;
    return WHOLESALE.test(type) ? isUnlisted || (!own && !wholesale) : !own;
  };
  return { isOffered, offered: [...(own ?? []), ...(wholesale ?? [])] };
}

function ofAgent(body: JsonObject): Offered {
  const changes = membersOf(membersOf(body['adcp'])['capability_changes']);
  const offered = typesIn(changes['notifications']) ?? OF_AGENT;
  return { isOffered: (type) => offered.includes(type), offered };
}
