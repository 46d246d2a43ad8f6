import { type Planned, trafficOf } from '../kill/traffic.ts';
import type { Random } from '../processes/random.ts';

/** What a seller tells together: the statuses of one task, or one report. */
export interface Story {
  readonly events: readonly Planned[];
  /** It does not wait for an answer before it tells the next status, and sends them in no order. */
  readonly isHasty: boolean;
}

/** One task in so many is told in haste: some of its statuses are overtaken, as on a network that reorders. */
const HASTY_ONE_IN = 4;

/** Half of the events are statuses, four a task, half delivery reports. */
export function storiesOf(events: number, random: Random): readonly Story[] {
  const none = { hasTransactions: false, hasDuplicates: false, pauses: 0, deaths: 0, failures: 0 };
  const stories = new Map<string, Planned[]>();
  for (const event of trafficOf({ events, ...none }, random).events) {
    const name = event.task ? `task ${event.task.id}` : `report ${event.key}`;
    stories.set(name, [...(stories.get(name) ?? []), event]);
  }
  return [...stories.values()].map((told) => {
    const isHasty = random.below(HASTY_ONE_IN) === 0;
    const events = isHasty ? told.toSorted(() => random.next() - 0.5) : told;
    return { events, isHasty };
  });
}
