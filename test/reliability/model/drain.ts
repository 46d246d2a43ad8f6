import { later, sendAgain, sendFresh, workSteps } from './environment.ts';
import { FAR_WAIT_MS } from '../../../src/stores/for-tests.ts';
import type { Step } from './explore.ts';
import type { Broken } from './invariants.ts';
import { isFinished, standing } from './invariants.ts';
import type { Play } from './play.ts';
import { keyOf } from './play.ts';
import { isAccounted, reconcileStep } from './reports.ts';
import { threadSteps } from './steps.ts';
import type { Budget, Sent, World } from './world.ts';
import { LEASE_MS, accountOf } from './world.ts';

/** What a sender does that was not told to stop: a fresh delivery, or the same bytes, its first or its last ones. */
type Retry = (play: Play, world: World, event: number, process: number) => Step<World>;

const RETRIES: Readonly<Record<string, Retry>> = {
  'fresh deliveries': (play, world, event, process) =>
    sendFresh(play, world, { event, copy: retryOf(play, world, event).copy }, process),
  'the bytes it sent first': (play, world, event, process) =>
    sendAgain(play, world, retryOf(play, world, event), process),
  'the bytes it sent last': (play, world, event, process) =>
    sendAgain(play, world, retryOf(play, world, event, -1), process),
};

/** Where a changed payload is answered 409, its sender has to come back with the copy that it sent first. */
function retryOf({ scenario }: Play, world: World, event: number, at = 0): Sent {
  const { first } = accountOf(world, event);
  const any = scenario.onChanged === 'first-wins' || first === undefined;
  const sent = world.sent.filter((one) => one.event === event && (any || one.copy === first)).at(at);
  if (!sent) throw new RangeError(`event ${event} was never sent`);
  return sent;
}

/** No further misfortune. */
const CALM: Budget = {
  sends: 0,
  crashes: 0,
  jumps: 0,
  failures: 0,
  permanent: 0,
  deadlines: 0,
  resends: 0,
  renewals: 0,
  returns: 0,
  losses: 0,
};

/** Leases to wait for at most. Far fewer than a parked record waits for by itself: its task wakes it. */
const ROUNDS = 12;

/**
 * From now on all goes well: senders retry what was not acknowledged, workers work, time passes. Then every event
 * that was ever sent has to come to its end, whichever way its sender retries.
 */
export function drained(play: Play, world: World): Broken {
  for (const [name, retry] of Object.entries(RETRIES)) {
    const broken = drainBy(play, { ...world, budget: CALM }, name, retry);
    if (broken) return broken;
  }
  return world.kept.streams.size > 0 ? reconciled(play, { ...world, budget: CALM }) : undefined;
}

/** Nobody sends anything more: what came is made safe, and what is missing pulled. */
function reconciled(play: Play, from: World): Broken {
  const walk: Walk = { world: from, onward: [] };
  for (let round = 0; round < ROUNDS && !isAccounted(play, walk.world); round += 1) {
    const step = reconcileStep(play, walk.world, (event) =>
      sendFresh(play, walk.world, { event, copy: 0 }, 0),
    );
    if (step) go(walk, step);
    const broken = settle(play, walk);
    if (broken) return { ...broken, onward: walk.onward };
    go(walk, passes(play, walk.world));
  }
  if (isAccounted(play, walk.world)) return undefined;
  const detail = `after ${ROUNDS} leases in which nothing more was sent`;
  return { invariant: 'every window comes, or is held', detail, onward: walk.onward };
}

function drainBy(play: Play, from: World, name: string, retry: Retry): Broken {
  const walk: Walk = { world: from, onward: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const event of open(play, walk.world)) {
      if (!accountOf(walk.world, event).acknowledged) go(walk, retry(play, walk.world, event, round % 2));
      const broken = settle(play, walk);
      if (broken) return { ...broken, onward: walk.onward };
    }
    if (open(play, walk.world).length === 0) return undefined;
    go(walk, passes(play, walk.world));
  }
  const { world, onward } = walk;
  const left = open(play, world).map((event) => {
    const { state, acked } = world.kept.records.get(keyOf(play, event)) ?? {};
    return `${keyOf(play, event)} is ${state ?? 'not there'}${acked ? ', acknowledged' : ''}`;
  });
  const detail = `after ${ROUNDS} leases, its sender retrying with ${name}: ${left.join('; ')}`;
  return { invariant: 'every event comes to its end', detail, onward };
}

function passes({ scenario }: Play, world: World): Step<World> {
  const ms = scenario.backMs === undefined ? LEASE_MS : FAR_WAIT_MS;
  return { label: `${ms} ms pass`, state: later(world, ms + 1) };
}

/** One way on, and what happened on it. */
interface Walk {
  world: World;
  readonly onward: string[];
}

function go(walk: Walk, { label, state }: Step<World>): void {
  walk.world = state;
  walk.onward.push(label);
}

/** Events that were sent, and are neither refused nor both acknowledged and finished. A pull that was not taken is over. */
function open(play: Play, world: World): readonly number[] {
  return play.scenario.events.flatMap(({ report }, event) => {
    const record = world.kept.records.get(keyOf(play, event));
    if (!record && report === 'pulled') return [];
    const finished = record !== undefined && isFinished(play, world, event, record);
    const { acknowledged, refused } = accountOf(world, event);
    const ended = refused || (finished && acknowledged);
    return ended || !world.sent.some((one) => one.event === event) ? [] : [event];
  });
}

/** Runs what is under way, and what workers find, to its end by the ordinary steps. */
function settle(play: Play, walk: Walk): Broken {
  for (;;) {
    const [thread] = walk.world.threads;
    const [step] = thread ? threadSteps(play, walk.world, thread) : workSteps(play, walk.world);
    if (!step) return undefined;
    go(walk, step);
    const broken = standing(play, walk.world);
    if (broken) return broken;
  }
}
