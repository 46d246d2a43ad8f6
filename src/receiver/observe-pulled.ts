// Makes an event from a pulled answer (data that the buyer requested from the seller), in the form of a webhook
// (owed.md §4.3, §6.5).
// Called by `observe-report.ts` and `observe-state.ts`, which define the two kinds of pulled answers.

import { utf8 } from '../codec/encoding.ts';
import { isLongerJson } from '../codec/json-size.ts';
import type { JsonObject } from '../codec/members.ts';
import { observationKey, type Observed } from '../events/observation.ts';
import { ConfigError, Fault } from '../shared/errors.ts';
import { turnAfter } from '../shared/time-limits.ts';
import type { FirstCopy } from '../stages/admitted-event.ts';
import { claimOf, readFrom } from '../stages/read.ts';
import type { EventClaim } from '../stores/store.ts';
import type { ReadyContext, ReceiverContext } from './context.ts';
import { admitObserved, kept } from './observe.ts';

/** A kind of pulled answers (reports or states), and the form of its events. */
interface PulledKind<P> {
  /** The subject of error messages, for example `the report`. */
  readonly name: string;
  /**
   * Returns the members of the stored envelope, except `idempotency_key`. @throws ConfigError for values that JSON
   * cannot express.
   */
  readonly envelope: (pulled: P) => JsonObject;
  /** Returns the facts that the store needs about the pulled answer and that the event does not contain. */
  readonly claim?: (pulled: P) => Pick<EventClaim, 'state'>;
}

/**
 * Returns the function that stores pulled answers of this kind as events, which workers pass to the handlers.
 * @throws UnfitObservation (rejects) for an answer that cannot be stored, Fault if the store cannot accept it now.
 */
export function observePulledWith<P extends { readonly sender: string }>(
  { lifecycle, startup }: ReceiverContext,
  kind: PulledKind<P>,
): (pulled: P) => Promise<Observed> {
  return async (pulled) => {
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'The receiver stops.');
    lifecycle.arrived();
    try {
      const ready = await startup.ready();
      return await admitObserved(pulled.sender, await kept(() => readPulled(pulled, kind, ready)), ready);
    } finally {
      lifecycle.answered();
    }
  };
}

/**
 * Makes an event from a pulled answer. The event's idempotency key is random, so the store recognises a duplicate by
 * the report's window or by the state.
 */
async function readPulled<P extends { readonly sender: string }>(
  pulled: P,
  { name, envelope: envelopeOf, claim: claimOfPulled }: PulledKind<P>,
  ready: ReadyContext,
): Promise<{ readonly reading: FirstCopy; readonly claim: EventClaim }> {
  const { config, hashes, registrations } = ready;
  const envelope = { idempotency_key: observationKey('pull', ready.newId()), ...envelopeOf(pulled) };
  const body = isLongerJson(envelope, config.maxBodyBytes) ? undefined : utf8(JSON.stringify(envelope));
  if (body === undefined || body.byteLength > config.maxBodyBytes) {
    throw new ConfigError(`${name} is over maxBodyBytes (${config.maxBodyBytes}) as JSON.`);
  }
  await turnAfter(body.byteLength);
  const reading = readFrom({ agentUrl: pulled.sender }, body, ready, { source: 'pull' });
  if (!reading.ok) throw new ConfigError('detail' in reading ? reading.detail : 'is not an event.');
  await turnAfter(body.byteLength);
  const claim = claimOf(body, reading, { edition: config.edition, hashes, registrations, isObserved: true });
  return { reading, claim: { ...claim, ...claimOfPulled?.(pulled) } };
}
