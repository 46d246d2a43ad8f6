// An event whose lease this process has, and the first copy of its body.
// Made by `admit`, the worker and the operator; all three pass it to `dispatch` (admission.md §4.7).

import type { Config } from '../config/resolve-options.ts';
import { Fault } from '../shared/errors.ts';
import { observedBy } from '../events/observation.ts';
import type { EventReading } from '../events/reading.ts';
import type { AcceptDecision, Lease, LeasedEvent } from '../stores/store.ts';
import { type Origin, type ReadContext, readFrom } from './read.ts';
import type { Running } from './running.ts';

/** The first copy of an event; every run of its handler receives it. */
export type FirstCopy = Extract<EventReading, { ok: true }>;

/**
 * Returns the sender of a stored event, as it is configured in a fixed list. If it is in none, only the agent URL is
 * returned. The envelope format of such a sender is unknown.
 */
export function originOf({ senders }: Pick<Config, 'senders'>, agentUrl: string): Origin {
  return senders.fixed?.find((sender) => sender.agentUrl === agentUrl) ?? { agentUrl };
}

/**
 * Parses a stored body again; the same bytes give the same event.
 * @throws Fault `misconfigured` if they do not, for example after a change of the package's version.
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
  /** Task id as it was passed to the store. Present for deliveries only. */
  readonly taskId?: string | undefined;
  readonly lease: Lease;
  /**
   * Time in ms, by the store's clock, from storing the event to its lease by a worker. Present for workers only.
   */
  readonly waitedMs?: number;
  /** Becomes `event.url`. */
  readonly url?: string | undefined;
  /** W3C `traceparent` of the delivery that brought the event. Only workers have it. */
  readonly traceparent?: string | undefined;
  readonly flags: AdmissionFlags;
  /** @throws Fault `misconfigured` if the stored body cannot be read any more. */
  readonly firstCopy: () => FirstCopy;
  /** True if nobody would send the event again. If its handler fails, it becomes DEAD at once. */
  readonly once: boolean;
}

/** An event that may run now and is registered as running in this process (admission.md §4.7). */
export interface Started {
  readonly won: AdmittedEvent;
  /** The function that `Running.begin` returned. */
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
