import { defined, isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type {
  Event,
  EventSubscription,
  NotificationFamily,
  NotificationState,
  OtherEvent,
} from '../events/event.ts';
import { parseInstant } from '../events/instant.ts';
import { notificationFamily } from '../events/notification-family.ts';
import { MAX_STATE_ID } from '../states/states.ts';
import type { ClaimedState, StateClaim } from '../stores/store.ts';
import { storedId } from './ids.ts';

/* The states that notifications tell: as the store is told of them, and as a handler is (owed.md §6.1). */

/** Names of members, one within the other. */
type Path = readonly string[];

/** Where a payload says of which thing it tells, what became of it, and when. */
interface StateMembers {
  readonly id: Path;
  readonly at: Path;
  readonly to?: Path;
  /** Of a thing that has no state any more once it is again what it was. */
  readonly from?: Path;
  /** The family says that the thing is gone. */
  readonly isEnd?: (family: string) => boolean;
}

/** Families whose payload has the id of one thing. Others tell of a log, of a pair of things, or of the seller. */
const STATES: { readonly [F in NotificationFamily]?: StateMembers } = {
  impairment: {
    id: ['impairment_id'],
    at: ['observed_at'],
    to: ['transition', 'to'],
    from: ['transition', 'from'],
  },
  'creative.status_changed': {
    id: ['creative_id'],
    at: ['transition', 'observed_at'],
    to: ['transition', 'to'],
  },
  'creative.purged': { id: ['creative_id'], at: ['purged_at'], isEnd: () => true },
  'account.status_changed': { id: ['account_id'], at: ['observed_at'], to: ['status'] },
  'reporting.status_changed': { id: ['delivery_config_id'], at: ['observed_at'], to: ['health'] },
  collection_list_changed: { id: ['list_id'], at: ['resolved_at'] },
  property_list_changed: { id: ['list_id'], at: ['resolved_at'] },
  wholesale_feed: {
    id: ['event', 'entity_id'],
    at: ['event', 'created_at'],
    isEnd: (family) => family.endsWith('.removed'),
  },
};

/** The last member of a path, where it is a string. */
function textAt(payload: JsonObject, path: Path): string | undefined {
  const [name = '', ...rest] = path;
  if (rest.length === 0) return textMember(payload, name);
  const inner = present(payload, name);
  return isJsonObject(inner) ? textAt(inner, rest) : undefined;
}

const textIn = (payload: JsonObject, path: Path | undefined): string | undefined =>
  path && textAt(payload, path);

const msOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseInstant(text)?.ms;

/** Its states are a media buy's; those of others are a subscription's. */
const IMPAIRMENT = 'impairment';

/**
 * What the store is told of a notification's state; undefined for a family without one, and an event of no subscription.
 * @param eventAt the event's own time, Unix ms.
 */
export function stateClaim(
  event: Event,
  eventAt: number | undefined,
  hashes: Hashes,
): StateClaim | undefined {
  if (event.kind !== 'other') return undefined;
  const { family = '', notification: payload } = event;
  if (!isJsonObject(payload)) return undefined;
  const said = saidIn(payload, family);
  const place = family === IMPAIRMENT ? ofMediaBuy(event, payload, hashes) : ofSubscription(event, hashes);
  if (said === undefined || !place) return undefined;
  const { at = eventAt ?? msOf(textMember(payload, 'fired_at')) } = said;
  return { ...said, ...(at !== undefined && { at }), ...(isHealthy(event) && { ended: true }), ...place };
}

/** Beside an impairment: its media buy has none any more. */
const isHealthy = ({ family, data, envelope }: OtherEvent): boolean =>
  family === IMPAIRMENT &&
  [data, envelope].some((one) => isJsonObject(one) && textMember(one, 'health') === 'ok');

const membersOf = (family: string): StateMembers | undefined => {
  const name = notificationFamily(family);
  return Object.hasOwn(STATES, name) ? STATES[name as NotificationFamily] : undefined;
};

type Said = Pick<StateClaim, 'id' | 'at' | 'to' | 'from' | 'ended'>;

/** What a payload says of its thing; undefined for a family without a state, or an id that cannot be kept. */
function saidIn(payload: JsonObject, family: string): Said | undefined {
  const members = membersOf(family);
  const id = textIn(payload, members?.id);
  if (!members || id === undefined || id.length > MAX_STATE_ID) return undefined;
  const said = { at: msOf(textAt(payload, members.at)), to: textIn(payload, members.to) };
  const ended = members.isEnd?.(family) ? (true as const) : undefined;
  return { id, ...defined({ ...said, from: textIn(payload, members.from), ended }) };
}

/** What an object of a snapshot was before, if that counts. */
export const originIn = (payload: JsonObject, family: string): string | undefined =>
  textIn(payload, membersOf(family)?.from);

type Place = Pick<StateClaim, 'holder' | 'mediaBuyId'>;

/** Of the row that keeps the states of a subscription and a type. Subscriber ids are unique (subscriptions.md §1.1). */
export const snapshotRowId = (
  { subscriberId }: Pick<EventSubscription, 'subscriberId'>,
  family: string,
  hashes: Hashes,
): string => storedId(`${subscriberId} ${family}`, hashes);

const ofSubscription = ({ subscription, family = '' }: OtherEvent, hashes: Hashes): Place | undefined =>
  subscription && { holder: { kind: 'snapshot', id: snapshotRowId(subscription, family, hashes) } };

/** The media buy that an impairment names, else the operation that does. */
function ofMediaBuy({ data, envelope, operationId }: Event, payload: JsonObject, hashes: Hashes): Place {
  const [mediaBuyId] = [payload, data, envelope].flatMap((one) =>
    isJsonObject(one) ? (textMember(one, 'media_buy_id') ?? []) : [],
  );
  if (mediaBuyId === undefined)
    return operationId === undefined
      ? {}
      : { holder: { kind: 'operation', id: storedId(operationId, hashes) } };
  // Their accounts have the id as it is.
  if (mediaBuyId.length > MAX_TEXT) return {};
  return { mediaBuyId, holder: { kind: 'stream', id: storedId(mediaBuyId, hashes) } };
}

/** For the handler. @param claimed as the store found it when it kept the event. */
export function notificationState({
  id,
  at,
  isEnded,
  isRepeated,
  mediaBuyId,
}: ClaimedState): NotificationState {
  return {
    id,
    observedAt: new Date(at).toISOString(),
    ended: isEnded === true,
    repeated: isRepeated === true,
    ...(mediaBuyId !== undefined && { mediaBuyId }),
  };
}
