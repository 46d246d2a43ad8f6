import { DOOR } from './door.ts';
import { leasedSteps } from './environment.ts';
import { HANDLER } from './handler.ts';
import type { Play, Steps } from './play.ts';
import type { Thread, World } from './world.ts';

const PLACES: Record<Thread['at'], (play: Play, world: World, thread: Thread) => Steps> = {
  ...DOOR,
  decided: (play, world, thread) =>
    thread.worker ? leasedSteps(play, world, thread) : DOOR.decided(play, world, thread),
  ...HANDLER,
};

/** What can become of a delivery or a run, the ordinary step first. */
export function threadSteps(play: Play, world: World, thread: Thread): Steps {
  return PLACES[thread.at](play, world, thread);
}
