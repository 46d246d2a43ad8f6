// Converts the states that notifications report, e.g. of impairments, to facts for the store and to the form for the
// handler (owed.md §6.1).
// `read` makes the facts, `dispatch` the handler's form; the reconciler finds rows by `snapshotRowId`.

import { isJsonObject, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { EventSubscription, NotificationState, OtherEvent } from '../events/event.ts';
import type { EventReading } from '../events/reading.ts';
import type { ClaimedState, StateClaim } from '../stores/store.ts';
import { storedId } from './ids.ts';

/**
 * Returns the facts about a notification's state for the store. Undefined for an event without a state, or without a
 * subscription that could keep it.
 */
export function stateClaim(
  { event, state }: Extract<EventReading, { ok: true }>,
  hashes: Hashes,
): StateClaim | undefined {
  if (!state || event.kind !== 'other') return undefined;
  // The state of an impairment is kept with its media buy; states of other families are kept with their subscription.
  const place = event.family === 'impairment' ? ofMediaBuy(event, hashes) : ofSubscription(event, hashes);
  return place && { ...state, ...place };
}

type Place = Pick<StateClaim, 'holder' | 'mediaBuyId'>;

/**
 * Returns the id of the row that keeps the states of one subscription and notification family. No account is needed,
 * because the subscriber id alone identifies the subscription (subscriptions.md §1.3).
 */
export const snapshotRowId = (
  { subscriberId }: Pick<EventSubscription, 'subscriberId'>,
  family: string,
  hashes: Hashes,
): string => storedId(`${subscriberId} ${family}`, hashes);

const ofSubscription = ({ subscription, family = '' }: OtherEvent, hashes: Hashes): Place | undefined =>
  subscription && { holder: { kind: 'snapshot', id: snapshotRowId(subscription, family, hashes) } };

/**
 * Returns the row of the media buy that an impairment names. If the impairment names none, returns the row of the
 * event's operation, which may name the media buy.
 */
function ofMediaBuy({ notification, data, envelope, operationId }: OtherEvent, hashes: Hashes): Place {
  const [mediaBuyId] = [notification, data, envelope].flatMap((one) =>
    isJsonObject(one) ? (textMember(one, 'media_buy_id') ?? []) : [],
  );
  if (mediaBuyId === undefined)
    return operationId === undefined
      ? {}
      : { holder: { kind: 'operation', id: storedId(operationId, hashes) } };
  // Rows contain the media buy's id unchanged. An id that is too long for a row has no row.
  if (mediaBuyId.length > MAX_TEXT) return {};
  return { mediaBuyId, holder: { kind: 'stream', id: storedId(mediaBuyId, hashes) } };
}

/**
 * Returns the state in the form for the handler.
 * @param claimed the state as the store found it when it stored the event.
 */
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
