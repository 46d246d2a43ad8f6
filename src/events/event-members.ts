// Adds and changes members of events without losing the raw body. A spread would lose it, because it is not
// enumerable.
// Called wherever an event is made or copied.

import type { Event } from './event.ts';

/**
 * Adds the bytes from which an event was read. They are not enumerable. Otherwise a logged or serialised event
 * would contain its body twice, once as a list of numbers.
 */
export function withRawBody<E extends object>(event: E, rawBody: Uint8Array): E & Pick<Event, 'rawBody'> {
  return Object.defineProperty(event, 'rawBody', { value: rawBody }) as E & Pick<Event, 'rawBody'>;
}

/** Returns the event with these members added or replaced. A spread alone would lose its `rawBody`. */
export function withMembers<E extends Pick<Event, 'rawBody'>, M extends object>(event: E, members: M): E & M {
  return withRawBody({ ...event, ...members }, event.rawBody);
}
