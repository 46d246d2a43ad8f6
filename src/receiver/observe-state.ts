// Hands a pulled state to the handlers, for example an impairment that a snapshot shows (owed.md §6.5).
// Called by the reconciler.

import { defined, type JsonObject } from '../codec/members.ts';
import type { EventSubscription } from '../events/event.ts';
import type { Observed } from '../events/observation.ts';
import { originIn } from '../events/state-reading.ts';
import { misfit } from '../registrations/answer-json.ts';
import { ConfigError } from '../shared/errors.ts';
import type { ToldState } from '../states/judge.ts';
import type { ReceiverContext } from './context.ts';
import { observePulledWith } from './observe-pulled.ts';

/** A state that a snapshot told the buyer (owed.md §6.5). */
export interface PulledState extends Pick<ToldState, 'state' | 'seen'> {
  /** The agent URL of the seller. */
  readonly sender: string;
  /** The family of the event, e.g. `impairment`. */
  readonly family: string;
  /** The media buy of an impairment. */
  readonly mediaBuyId?: string;
  /** The subscription of any other state. */
  readonly subscription?: EventSubscription;
  /** The object in the snapshot; for an end, the facts that are known of it. */
  readonly payload: JsonObject;
  /** The row that keeps the state. */
  readonly holder: { readonly kind: 'stream' | 'snapshot'; readonly id: string };
}

/**
 * Hands a pulled state to the handlers. `duplicate`: another event of the state came after it was judged
 * (owed.md §6.6).
 */
export type ObserveState = (pulled: PulledState) => Promise<Observed>;

/**
 * @throws UnfitObservation (rejects) for a state that cannot be kept, Fault if the store cannot take it now.
 */
export const observeStateWith = (context: ReceiverContext): ObserveState =>
  observePulledWith(context, {
    name: 'the state',
    envelope: ({ family, mediaBuyId, subscription, payload }) => {
      const wrong = misfit(payload, 'the payload', 0);
      if (wrong !== undefined) throw new ConfigError(`${wrong}, which JSON cannot keep.`);
      return {
        notification_type: family,
        ...defined({
          media_buy_id: mediaBuyId,
          subscriber_id: subscription?.subscriberId,
          account_id: subscription?.accountId,
        }),
        result: payload,
      };
    },
    claim: ({ family, payload, mediaBuyId, state: { id, at, to, ended }, seen = null, holder }) => ({
      state: {
        id,
        at,
        ...defined({ to, from: originIn(payload, family), mediaBuyId }),
        ...(ended && { ended }),
        holder,
        seen,
      },
    }),
  });
