// Filters events: the option `events` names those that the sink receives (serve.md §1.6). An instance calls it for each
// event.
import type { Event } from '../index.ts';

const namesOf = (event: Event): readonly (string | undefined)[] => {
  if (event.kind === 'task') return ['task', `task.${event.status}`];
  // Both names are accepted: that of the handler, and the kind in the event itself.
  if (event.kind === 'delivery-report') return ['deliveryReport', event.kind];
  return [event.kind, event.family];
};

/** Returns a function that is true for events to forward. If no names are given, all events are forwarded. */
export function forwards(events: readonly string[] | undefined): (event: Event) => boolean {
  if (!events) return () => true;
  const named = new Set(events);
  return (event) => namesOf(event).some((name) => name !== undefined && named.has(name));
}
