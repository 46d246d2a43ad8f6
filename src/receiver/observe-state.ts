// Passes a pulled state to the handlers, for example an impairment in a snapshot (owed.md §6.5).
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

/** A state that the buyer learned from a snapshot (owed.md §6.5). */
export interface PulledState extends Pick<ToldState, 'state' | 'seen'> {
  /** The agent URL of the seller. */
  readonly sender: string;
  /** The family of the event, e.g. `impairment`. */
  readonly family: string;
  /** The media buy of an impairment. */
  readonly mediaBuyId?: string;
  /** The subscription of any other state. */
  readonly subscription?: EventSubscription;
  /** The object in the snapshot. If the state has ended, the facts that are known about it. */
  readonly payload: JsonObject;
  /** The row in which the state is stored. */
  readonly holder: { readonly kind: 'stream' | 'snapshot'; readonly id: string };
}

/**
 * Passes a pulled state to the handlers. `duplicate`: after the snapshot was judged, another event reported the
 * state (owed.md §6.6).
 */
export type ObserveState = (pulled: PulledState) => Promise<Observed>;

/**
 * Returns the function that observes pulled states.
 * @throws UnfitObservation (rejects) for a state that cannot be stored, Fault if the store cannot accept it now.
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
