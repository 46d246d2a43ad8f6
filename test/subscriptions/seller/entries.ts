/* What a seller takes as a set of notifications, and what it says of one that it does not take. It shares no code with the buyer. */

/** Of one account, or of the whole agent. */
export type Channel = 'account' | 'agent';

/** One entry of a set. */
export interface Entry {
  readonly subscriber_id: string;
  readonly url: string;
  readonly event_types: readonly string[];
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string };
  readonly active: boolean;
  readonly [member: string]: unknown;
}

/** Why an entry is not taken, as an error of the protocol. */
export interface Fault {
  readonly code: string;
  readonly message: string;
  readonly field: string;
}

/** Event types of each channel. */
export const OFFERED: Readonly<Record<Channel, readonly string[]>> = {
  account: [
    'creative.status_changed',
    'creative.purged',
    'creative.assignment_changed',
    'indicators.changed',
    'account.status_changed',
    'product.created',
    'product.updated',
    'product.priced',
    'product.removed',
    'signal.created',
    'signal.updated',
    'signal.priced',
    'signal.removed',
    'wholesale_feed.bulk_change',
  ],
  agent: ['capabilities.changed'],
};

export const MOST_ENTRIES = 16;

/** An entry is a closed object. The last member is of an edition that no buyer knows yet. */
const MEMBERS = new Set([
  'subscriber_id',
  'url',
  'event_types',
  'authentication',
  'active',
  'product_payload_view',
  'ext',
  'quiet_hours',
]);

const SUBSCRIBER_ID = /^[A-Za-z0-9_.:-]{1,64}$/;
const LEGACY = ['HMAC-SHA256', 'Bearer'];
const LEAST_CREDENTIALS = 32;

type Given = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Given =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isLoopback = ({ hostname }: URL): boolean => hostname === '127.0.0.1' || hostname === 'localhost';

function urlFaults(url: unknown, field: string): readonly Fault[] {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  const isTaken =
    parsed &&
    (parsed.protocol === 'https:' || isLoopback(parsed)) &&
    parsed.hash === '' &&
    parsed.username === '';
  return isTaken ? [] : [{ code: 'INVALID_REQUEST', message: 'the URL is not one to send to', field }];
}

function authenticationFaults(authentication: unknown, field: string): readonly Fault[] {
  if (authentication === undefined) return [];
  const { schemes, credentials, ...more } = isObject(authentication) ? authentication : {};
  const isTaken =
    Array.isArray(schemes) &&
    schemes.length === 1 &&
    LEGACY.includes(schemes[0] as string) &&
    typeof credentials === 'string' &&
    credentials.length >= LEAST_CREDENTIALS &&
    Object.keys(more).length === 0;
  return isTaken
    ? []
    : [{ code: 'VALIDATION_ERROR', message: 'authentication needs one scheme and credentials', field }];
}

function typesFaults(types: unknown, channel: Channel, field: string): readonly Fault[] {
  if (!Array.isArray(types) || types.length === 0) {
    return [{ code: 'VALIDATION_ERROR', message: 'event_types needs one at least', field }];
  }
  const foreign = types.filter((type) => !OFFERED[channel].includes(type as string));
  return foreign.length === 0
    ? []
    : [{ code: 'VALIDATION_ERROR', message: `not of this channel: ${foreign.join(', ')}`, field }];
}

function entryFaults(entry: unknown, channel: Channel, field: string): readonly Fault[] {
  if (!isObject(entry)) return [{ code: 'VALIDATION_ERROR', message: 'not an object', field }];
  const { subscriber_id: id, url, event_types: types, authentication, active = true } = entry;
  const said = (message: string, member: string): Fault => ({
    code: 'VALIDATION_ERROR',
    message,
    field: `${field}.${member}`,
  });
  const unknown = Object.keys(entry).filter((member) => !MEMBERS.has(member));
  return [
    ...unknown.map((member) => said(`${member} is not known`, member)),
    ...(typeof id === 'string' && SUBSCRIBER_ID.test(id) ? [] : [said('not a name', 'subscriber_id')]),
    ...(typeof active === 'boolean' ? [] : [said('neither true nor false', 'active')]),
    ...urlFaults(url, `${field}.url`),
    ...typesFaults(types, channel, `${field}.event_types`),
    ...authenticationFaults(authentication, `${field}.authentication`),
  ];
}

/** What is wrong with a set; nothing: it is one. */
export function faultsOf(given: unknown, channel: Channel, field: string): readonly Fault[] {
  if (!Array.isArray(given)) return [{ code: 'VALIDATION_ERROR', message: 'not an array', field }];
  if (given.length > MOST_ENTRIES) {
    return [{ code: 'VALIDATION_ERROR', message: `more than ${MOST_ENTRIES} entries`, field }];
  }
  const ids = given.map((entry) => (isObject(entry) ? entry['subscriber_id'] : undefined));
  const doubled = ids.flatMap((id, at) => (ids.indexOf(id) === at ? [] : [at]));
  return [
    ...given.flatMap((entry, at) => entryFaults(entry, channel, `${field}[${at}]`)),
    ...doubled.map((at) => ({
      code: 'VALIDATION_ERROR',
      message: 'there is another entry of this subscriber',
      field: `${field}[${at}].subscriber_id`,
    })),
  ];
}

/** As it is kept: what is left out has its default. */
export const entryIn = (given: Given): Entry =>
  ('active' in given ? { ...given } : { ...given, active: true }) as Entry;

/** As it is shown: credentials are write-only. */
export const shown = (entry: Entry): object => ({
  ...entry,
  ...(entry.authentication && { authentication: { schemes: entry.authentication.schemes } }),
});
