import type { Play } from './play.ts';
import { keyOf } from './play.ts';
import type { Thread, World } from './world.ts';
import { breached, eventOf, withAccount } from './world.ts';

/** What a sender can be told here. */
export type Status = 200 | 401 | 409 | 429 | 503;

/**
 * The answer leaves. Whether it arrives does not matter: the sender may send again whatever it was told, which is a
 * lost answer and a timeout as well.
 */
export function answered(play: Play, world: World, thread: Thread, status: Status): World {
  if (!thread.answerable) return world;
  if (thread.decision?.kind === 'already-final') return refused(play, world, thread);
  // 409 is the sender's own doing and keeps the first copy; 429 and 503 it retries.
  if (status !== 200 && status !== 401) return world;
  const record = world.kept.records.get(keyOf(play, thread.event));
  // Its window came before: nothing is kept of a pull.
  if (!record && eventOf(play.scenario, thread.event).report === 'pulled') return world;
  const after = withAccount(world, thread.event, { acknowledged: true });
  if (status === 200 || record?.acked) return after;
  return breached(
    after,
    'no terminal 4xx before the event is safe',
    `${keyOf(play, thread.event)} was answered 401 replayed, but its record is ${record?.state ?? 'not there'}`,
  );
}

/** 409 for a second terminal status: its sender gives it up, so the one that is kept has to be safe. */
function refused(play: Play, world: World, { event }: Thread): World {
  const { events } = play.scenario;
  const { task } = eventOf(play.scenario, event);
  const isKept = events.some((other, at) => {
    const record = at !== event && other.task?.terminal && world.kept.records.get(keyOf(play, at));
    return record && other.task?.id === task?.id && record.acked && record.state !== 'stale';
  });
  const after = withAccount(world, event, { refused: true });
  if (isKept) return after;
  return breached(
    after,
    'no terminal 4xx before the event is safe',
    `${keyOf(play, event)} was answered 409, and no other terminal status of its task is safe`,
  );
}
