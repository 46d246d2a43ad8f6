import { drained } from './drain.ts';
import { crashSteps, jumpSteps, sendSteps, workSteps } from './environment.ts';
import type { Exploration, Model } from './explore.ts';
import { explore } from './explore.ts';
import { standing } from './invariants.ts';
import { keyOfWorld } from './key.ts';
import type { Play } from './play.ts';
import { reportSteps } from './reports.ts';
import { threadSteps } from './steps.ts';
import type { System } from './system.ts';
import type { Invariant, Scenario, World } from './world.ts';
import { worldOf } from './world.ts';

/** Two processes, a seller and a clock over one store. */
export function modelOf(play: Play & Endings): Model<World, Invariant> {
  return {
    initial: worldOf(play.scenario),
    next: (world) => [
      ...world.threads.flatMap((thread) => threadSteps(play, world, thread)),
      ...workSteps(play, world),
      ...sendSteps(play, world),
      ...crashSteps(play, world),
      ...jumpSteps(play, world),
      ...reportSteps(play, world),
    ],
    key: (world) => keyOfWorld(play, world),
    // Where nothing is under way, what becomes of it too: whatever is under way ends in such a state.
    check: (world) =>
      standing(play, world) ?? (play.drains && world.threads.length === 0 ? drained(play, world) : undefined),
  };
}

interface Endings {
  /** Whether each world in which nothing is under way is played to its end too. */
  readonly drains: boolean;
}

/** Without `drains` a counterexample ends where something does not hold, not on the way to an end: it is a shortest one. */
export function exploreScenario(
  scenario: Scenario,
  system: System,
  { drains, protocol }: Endings & Pick<Play, 'protocol'> = { drains: true },
): Exploration<Invariant> {
  return explore(modelOf({ scenario, system, drains, ...(protocol && { protocol }) }));
}
