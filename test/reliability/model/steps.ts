import { DOOR } from './door.ts';
import { leasedSteps, lookSteps } from './environment.ts';
import type { Step } from './explore.ts';
import { HANDLER } from './handler.ts';
import type { Play, Steps } from './play.ts';
import { doer } from './play.ts';
import type { Thread, World } from './world.ts';
import { withThread } from './world.ts';

type StepsAt = (play: Play, world: World, thread: Thread) => Steps;

const STEPS_AT: Record<Thread['at'], StepsAt> = {
  looking: lookSteps,
  ...DOOR,
  decided: (play, world, thread) =>
    thread.worker ? leasedSteps(play, world, thread) : DOOR.decided(play, world, thread),
  ...HANDLER,
};

/** What can become of a delivery or a run, the ordinary step first. */
export function threadSteps(play: Play, world: World, thread: Thread): Steps {
  const stepsAt = STEPS_AT[thread.at];
  return play.protocol
    ? plannedSteps(stepsAt, { ...play, protocol: play.protocol }, world, thread)
    : stepsAt(play, world, thread);
}

/** An operation of the store is two steps: it is planned on what is seen, and taken or refused later. */
function plannedSteps(stepsAt: StepsAt, play: Required<Play>, world: World, thread: Thread): Steps {
  const { protocol } = play;
  const { seen, ...unseen } = thread;
  const view = seen ? { protocol, seen } : { protocol };
  const steps: Step<World>[] = [];
  for (const { label, state } of stepsAt(play, { ...world, view }, thread)) {
    const { view: looked, ...after } = state;
    const outcome = looked?.outcome;
    if (!seen && outcome === 'unseen') {
      if (steps.some((step) => step.label.endsWith(PLANS))) continue;
      const state = withThread(world, { ...thread, seen: { kept: world.kept, now: world.now } });
      steps.push({ label: `${doer(thread)} ${PLANS}`, state });
    } else if (!seen) steps.push({ label, state: after });
    else if (outcome === 'taken') steps.push({ label, state: withoutSeen(after, thread) });
    else if (outcome === 'refused') {
      steps.push({ label: `${label}: refused, for its rows have changed`, state: withThread(world, unseen) });
    }
  }
  return steps;
}

const PLANS = 'plans on what it sees';

function withoutSeen(world: World, { id }: Thread): World {
  const threads = world.threads.map((thread) => {
    if (thread.id !== id) return thread;
    const { seen: _seen, ...rest } = thread;
    return rest;
  });
  return { ...world, threads };
}
