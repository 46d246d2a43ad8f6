import type { Config } from '../config/resolve-options.ts';
import { Fault } from '../shared/errors.ts';
import { observedBy } from '../events/observation.ts';
import type { EventReading } from '../events/reading.ts';
import type { AcceptDecision, Lease, LeasedEvent } from '../stores/store.ts';
import { type Origin, type ReadContext, readFrom } from './read.ts';
import type { Running } from './running.ts';

/** The first copy of an event: what every run of its handler gets. */
export type FirstCopy = Extract<EventReading, { ok: true }>;

/** A stored event's sender; one that is no longer configured, or named by a function of the URL, has no format. */
export function originOf({ senders }: Pick<Config, 'senders'>, agentUrl: string): Origin {
  return senders.fixed?.find((sender) => sender.agentUrl === agentUrl) ?? { agentUrl };
}

/**
 * Reads a body that was read before, at its admission: the same bytes give the same event.
 * @throws Fault `misconfigured` where they do not any more, say in another version of the package.
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

/** An event that is leased to this process, by a delivery, a worker or a redrive: its handler is to run. */
export interface AdmittedEvent {
  readonly kind: 'won';
  readonly origin: Origin;
  readonly key: string;
  /** Of sender and key. */
  readonly deliveryId: string;
  /** Of a delivery: as the store was told. */
  readonly taskId?: string | undefined;
  readonly lease: Lease;
  /** How long a worker's was stored, by the store's clock. Ms. */
  readonly waitedMs?: number;
  /** `event.url`. */
  readonly url?: string | undefined;
  /** A worker's: of the delivery that brought it. W3C `traceparent`. */
  readonly traceparent?: string | undefined;
  readonly flags: AdmissionFlags;
  /** @throws Fault `misconfigured` where the stored body cannot be read any more. */
  readonly firstCopy: () => FirstCopy;
  /** Nobody would bring it again: if it fails, it is DEAD. */
  readonly once: boolean;
}

/** One that this process may run, and counts as running (admission.md §4.7). */
export interface Started {
  readonly won: AdmittedEvent;
  /** As `Running.begin` gives it. */
  readonly over: () => void;
}

/** Undefined where this process must not start it: its lease is to be given back. */
export function started(won: AdmittedEvent, running: Running): Started | undefined {
  const { origin, key, deliveryId, taskId, lease } = won;
  const suspect = lease.suspect === true;
  const over = running.begin({ deliveryId, sender: origin.agentUrl, key, suspect, taskId });
  return over && { won, over };
}

/** What the store knows of an event beside its body. */
type AdmissionFlags = Pick<
  Extract<AcceptDecision, { kind: 'won' }>,
  'reemission' | 'afterTerminal' | 'afterFinal' | 'windows' | 'claimedState'
>;
