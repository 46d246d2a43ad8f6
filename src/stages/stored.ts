import { Fault } from '../errors.ts';
import type { EventReading } from '../events/reading.ts';
import type { Config } from '../config/resolve.ts';
import { readFrom, type Origin, type ReadContext } from './read.ts';

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
export function readStored(origin: Origin, key: string, body: Uint8Array, context: ReadContext): FirstCopy {
  const reading = readFrom(origin, body, context);
  if (reading.ok && reading.event.idempotencyKey === key) return reading;
  throw new Fault('misconfigured', `the stored first copy of ${key} cannot be read any more`);
}
