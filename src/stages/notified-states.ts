import { isJsonObject, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { EventSubscription, NotificationState, OtherEvent } from '../events/event.ts';
import type { EventReading } from '../events/reading.ts';
import type { ClaimedState, StateClaim } from '../stores/store.ts';
import { storedId } from './ids.ts';

/* The states that notifications tell: as the store is told of them, and as a handler is (owed.md §6.1). */

/** What the store is told of a notification's state; undefined for an event without one, or of no subscription. */
export function stateClaim(
  { event, state }: Extract<EventReading, { ok: true }>,
  hashes: Hashes,
): StateClaim | undefined {
  if (!state || event.kind !== 'other') return undefined;
  // An impairment's is a media buy's; those of other families are a subscription's.
  const place = event.family === 'impairment' ? ofMediaBuy(event, hashes) : ofSubscription(event, hashes);
  return place && { ...state, ...place };
}

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
function ofMediaBuy({ notification, data, envelope, operationId }: OtherEvent, hashes: Hashes): Place {
  const [mediaBuyId] = [notification, data, envelope].flatMap((one) =>
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
