// Filters events: the option `events` names the events that the sink (their destination) receives (serve.md §1.6). An
// instance calls it for each event.
import type { Event } from '../index.ts';

const namesOf = (event: Event): readonly (string | undefined)[] => {
  if (event.kind === 'task') return ['task', `task.${event.status}`];
  // A report has two names in the option `events`: `deliveryReport`, which is the name of its handler, and the kind of
  // the event.
  if (event.kind === 'delivery-report') return ['deliveryReport', event.kind];
  return [event.kind, event.family];
};

/** Returns a function that is true for events to forward. If no names are given, all events are forwarded. */
export function forwards(events: readonly string[] | undefined): (event: Event) => boolean {
  if (!events) return () => true;
  const named = new Set(events);
  return (event) => namesOf(event).some((name) => name !== undefined && named.has(name));
}
