// Passes a pulled state to the handlers: a state that a snapshot (a seller's answer with all current states) shows,
// e.g. an impairment (owed.md §6.5).
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

/** A state that the buyer learned from a snapshot, a seller's answer with all current states (owed.md §6.5). */
export interface PulledState extends Pick<ToldState, 'state' | 'seen'> {
  /** The agent URL of the seller. */
  readonly sender: string;
  /** The family of the event, e.g. `impairment`. */
  readonly family: string;
  /** The id of the media buy, if the state is an impairment. */
  readonly mediaBuyId?: string;
  /** The subscription to which the state belongs, if the state is not an impairment. */
  readonly subscription?: EventSubscription;
  /** The state's object in the snapshot. If the state has ended, the facts that are known about the state. */
  readonly payload: JsonObject;
  /** The row in which the state is stored. */
  readonly holder: { readonly kind: 'stream' | 'snapshot'; readonly id: string };
}

/**
 * Passes a pulled state to the handlers. The result is `duplicate` if another event has reported the state since the
 * snapshot was compared (owed.md §6.6).
 */
export type ObserveState = (pulled: PulledState) => Promise<Observed>;

/**
 * Returns the function that passes pulled states to the handlers.
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
