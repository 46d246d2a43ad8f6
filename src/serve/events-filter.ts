// The filter of events: the option `events` names those that the sink gets (serve.md §1.6). An instance calls it for
// each event.
import type { Event } from '../index.ts';

const namesOf = (event: Event): readonly (string | undefined)[] => {
  if (event.kind === 'task') return ['task', `task.${event.status}`];
  // The name of its handler, and the kind in the event itself.
  if (event.kind === 'delivery-report') return ['deliveryReport', event.kind];
  return [event.kind, event.family];
};

/** True for an event that is forwarded. Without names every event is. */
export function forwards(events: readonly string[] | undefined): (event: Event) => boolean {
  if (!events) return () => true;
  const named = new Set(events);
  return (event) => namesOf(event).some((name) => name !== undefined && named.has(name));
}
