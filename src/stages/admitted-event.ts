// An event whose lease this process has, with the first copy of its body: the copy that was stored when the event first
// arrived.
// Made by `admit`, the worker and redrives; all three pass it to `dispatch` (admission.md §4.7).

import type { Config } from '../config/resolve-options.ts';
import { Fault } from '../shared/errors.ts';
import { observedBy } from '../events/observation.ts';
import type { EventReading } from '../events/reading.ts';
import type { AcceptDecision, Lease, LeasedEvent } from '../stores/store.ts';
import { type Origin, type ReadContext, readFrom } from './read.ts';
import type { Running } from './running.ts';

/** The stored first copy of an event, parsed. Every run of the event's handler receives it. */
export type FirstCopy = Extract<EventReading, { ok: true }>;

/**
 * Returns the sender of a stored event, as it is configured in a fixed list. If the sender is no longer in the list, or
 * a `senders` function names it, only its agent URL is returned. The format of its webhooks is then unknown.
 */
export function originOf({ senders }: Pick<Config, 'senders'>, agentUrl: string): Origin {
  return senders.fixed?.find((sender) => sender.agentUrl === agentUrl) ?? { agentUrl };
}

/**
 * Parses a stored body again; the same bytes give the same event.
 * @throws Fault `misconfigured` if the bytes no longer give that event, for example after a change of the package's
 * version.
 */
export function readStored(
  origin: Origin,
  { key, body, source, url }: Pick<LeasedEvent, 'key' | 'body' | 'source' | 'url'>,
  context: ReadContext,
): FirstCopy {
  const reading = readFrom(origin, body, context, { source: source ?? observedBy(key), url });
  if (reading.ok && reading.event.idempotencyKey === key) return reading;
  throw new Fault('misconfigured', `the stored first copy of ${key} cannot be read any more`);
}

/** An event whose lease this process has, from a delivery, a worker or a redrive, and whose handler must run. */
export interface AdmittedEvent {
  readonly kind: 'won';
  readonly origin: Origin;
  readonly key: string;
  /** The id that handlers receive, derived from sender and key. */
  readonly deliveryId: string;
  /** The task's id in the form in which it was passed to the store. Present for deliveries only. */
  readonly taskId?: string | undefined;
  readonly lease: Lease;
  /**
   * Time in ms, by the store's clock, from storing the event to its lease by a worker. Present for workers only.
   */
  readonly waitedMs?: number;
  /**
   * The URL of this delivery; for a worker or a redrive, of the delivery that first brought the event. It becomes
   * `event.url` and `ctx.url`.
   */
  readonly url?: string | undefined;
  /** W3C `traceparent` of the delivery that brought the event. Only workers have it. */
  readonly traceparent?: string | undefined;
  readonly flags: AdmissionFlags;
  /**
   * Returns the stored first copy of the event.
   * @throws Fault `misconfigured` if the stored body cannot be read any more.
   */
  readonly firstCopy: () => FirstCopy;
  /**
   * True for a redriven event, which no seller will send again. If its handler fails, the event becomes DEAD without
   * another run.
   */
  readonly once: boolean;
}

/** An event that may run now and is registered as running in this process (admission.md §4.7). */
export interface Started {
  readonly won: AdmittedEvent;
  /** The function that `Running.begin` returned, by which the event stops counting as running. */
  readonly over: () => void;
}

/**
 * Registers the event as running. Undefined if this process must not run it now; the caller then returns its lease.
 */
export function started(won: AdmittedEvent, running: Running): Started | undefined {
  const { origin, key, deliveryId, taskId, lease } = won;
  const suspect = lease.suspect === true;
  const over = running.begin({ deliveryId, sender: origin.agentUrl, key, suspect, taskId });
  return over && { won, over };
}

/** Facts that the store knows about an event in addition to its body. */
type AdmissionFlags = Pick<
  Extract<AcceptDecision, { kind: 'won' }>,
  'reemission' | 'afterTerminal' | 'afterFinal' | 'windows' | 'claimedState'
>;
