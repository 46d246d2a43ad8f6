import type { Event } from '../index.ts';

const namesOf = (event: Event): readonly (string | undefined)[] => {
  if (event.kind === 'task') return ['task', `task.${event.status}`];
  // As handlers are named, and as the event itself says.
  if (event.kind === 'delivery-report') return ['deliveryReport', event.kind];
  return [event.kind, event.family];
};

/** Whether the sink is given an event (serve.md §1.6). */
export function forwards(events: readonly string[] | undefined): (event: Event) => boolean {
  if (!events) return () => true;
  const named = new Set(events);
  return (event) => namesOf(event).some((name) => name !== undefined && named.has(name));
}
