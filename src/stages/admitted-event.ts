// An event that is leased to this process, and the first copy of its body.
// Made by `admit`, the worker and the operator; taken by `dispatch`, which is one for all three (admission.md
// §4.7).

import type { Config } from '../config/resolve-options.ts';
import { Fault } from '../shared/errors.ts';
import { observedBy } from '../events/observation.ts';
import type { EventReading } from '../events/reading.ts';
import type { AcceptDecision, Lease, LeasedEvent } from '../stores/store.ts';
import { type Origin, type ReadContext, readFrom } from './read.ts';
import type { Running } from './running.ts';

/** The first copy of an event, which every run of its handler gets. */
export type FirstCopy = Extract<EventReading, { ok: true }>;

/**
 * Finds the configured sender of a stored event. If it is no longer configured, or comes from a function of
 * the URL, its format is unknown.
 */
export function originOf({ senders }: Pick<Config, 'senders'>, agentUrl: string): Origin {
  return senders.fixed?.find((sender) => sender.agentUrl === agentUrl) ?? { agentUrl };
}

/**
 * Reads a stored body again: the same bytes give the same event.
 * @throws Fault `misconfigured` if they no longer do, for example after a change of the package's version.
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

/**
 * An event that is leased to this process by a delivery, a worker or a redrive, and whose handler has to run.
 */
export interface AdmittedEvent {
  readonly kind: 'won';
  readonly origin: Origin;
  readonly key: string;
  /** Derived from sender and key. */
  readonly deliveryId: string;
  /** Task id as the store was told it. Only deliveries have it. */
  readonly taskId?: string | undefined;
  readonly lease: Lease;
  /** Time in the store until a worker leased the event, by the store's clock, in ms. Only workers have it. */
  readonly waitedMs?: number;
  /** Becomes `event.url`. */
  readonly url?: string | undefined;
  /** W3C `traceparent` of the delivery that brought the event. Only workers have it. */
  readonly traceparent?: string | undefined;
  readonly flags: AdmissionFlags;
  /** @throws Fault `misconfigured` if the stored body cannot be read any more. */
  readonly firstCopy: () => FirstCopy;
  /** True if nobody would send the event again: if it fails, it becomes DEAD. */
  readonly once: boolean;
}

/** An event that this process may run and counts as running (admission.md §4.7). */
export interface Started {
  readonly won: AdmittedEvent;
  /** The function that `Running.begin` returned. */
  readonly over: () => void;
}

/** Undefined if this process must not start the event: its lease has to be given back. */
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
