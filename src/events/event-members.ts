// Adds and changes members of events without losing the raw body, which is not enumerable.
// Called wherever an event is made or copied.

import type { Event } from './event.ts';

/**
 * Adds the bytes that an event was read from. They are not enumerable, so that a logged or serialised event
 * does not contain its body twice, once as numbers.
 */
export function withRawBody<E extends object>(event: E, rawBody: Uint8Array): E & Pick<Event, 'rawBody'> {
  return Object.defineProperty(event, 'rawBody', { value: rawBody }) as E & Pick<Event, 'rawBody'>;
}

/** The event with other members. A spread alone would lose its `rawBody`. */
export function withMembers<E extends Pick<Event, 'rawBody'>, M extends object>(event: E, members: M): E & M {
  return withRawBody({ ...event, ...members }, event.rawBody);
}
