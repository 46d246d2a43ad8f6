import type { Play } from './play.ts';
import { keyOf } from './play.ts';
import type { Thread, World } from './world.ts';
import { breached, withAccount } from './world.ts';

/** What a sender can be told here. */
export type Status = 200 | 401 | 409 | 429 | 503;

/**
 * The answer leaves. Whether it arrives does not matter: the sender may send again whatever it was told, which is a
 * lost answer and a timeout as well.
 */
export function answered(play: Play, world: World, thread: Thread, status: Status): World {
  if (!thread.answerable) return world;
  // 409 is the sender's own doing and keeps the first copy; 429 and 503 it retries.
  if (status !== 200 && status !== 401) return world;
  const record = world.kept.records.get(keyOf(play, thread.event));
  const after = withAccount(world, thread.event, { acknowledged: true });
  if (status === 200 || record?.acked) return after;
  return breached(
    after,
    'no terminal 4xx before the event is safe',
    `${keyOf(play, thread.event)} was answered 401 replayed, but its record is ${record?.state ?? 'not there'}`,
  );
}
