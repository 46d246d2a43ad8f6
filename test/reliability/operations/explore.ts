import { hash } from 'node:crypto';
import { advanced, joined } from './actors.ts';
import {
  type ActorKind,
  type Breach,
  type Broken,
  judge,
  operationsIn,
  SELLER,
  type SellerKind,
  TASK,
  type World,
} from './world.ts';

/** A world to be explored. */
export interface Scenario {
  readonly seller: SellerKind;
  readonly creators: number;
  /** How many of each may come, and how often time passes. */
  readonly left: World['left'];
}

interface Next {
  readonly label: string;
  readonly world: () => Promise<World> | World;
}

/** The next instant at which something may be due, or a request key is over. */
function nextInstant(world: World): number | undefined {
  const due = world.rows.flatMap(({ dueAt }) => dueAt ?? []);
  const keys = operationsIn(world).flatMap(({ stored }) =>
    stored.state === 'calling' ? stored.keyUntil : [],
  );
  const later = [...due, ...keys].filter((at) => at > world.now);
  return later.length > 0 ? Math.min(...later) : undefined;
}

/** Leases that are over matter to nobody. */
function passed(world: World, now: number): World {
  const live = ({ until }: { readonly until: number }): boolean => until > now;
  return { ...world, now, calls: world.calls.filter(live), polls: world.polls.filter(live) };
}

const less = (world: World, what: keyof World['left']): World => ({
  ...world,
  left: { ...world.left, [what]: world.left[what] - 1 },
});

/** All that can happen next. */
function nextOf(world: World, broken: Broken): readonly Next[] {
  const steps: Next[] = world.actors.flatMap(({ name, next }) =>
    next === undefined
      ? []
      : { label: `${name}: ${next}`, world: () => advanced(world, name, broken, false) },
  );
  const { left } = world;
  const join = (kind: Exclude<ActorKind, 'creator'>, is = ''): void => {
    if (left[kind] === 0) return;
    const name = `${kind} ${left[kind]}${is}`;
    steps.push({ label: `${name} begins`, world: () => joined(less(world, kind), kind, name, broken) });
  };
  const isDue = (kind: string): boolean =>
    world.rows.some((row) => row.kind === kind && row.dueAt !== null && row.dueAt <= world.now);
  if (isDue('operation')) join('repeater');
  if (isDue('watch')) join('poller');
  if (world.event === 'safe') join('worker');
  const isSubmitted = world.seller !== 'completes' && world.accepted.size > 0;
  if (isSubmitted && !world.isFinished) {
    steps.push({ label: 'the seller has done its task', world: () => ({ ...world, isFinished: true }) });
  }
  if (isSubmitted && world.isFinished) {
    const destinations = [...world.accepted.keys()].filter((key) => world.requests.get(key)?.hasConfig);
    for (const { row, stored } of operationsIn(world)) {
      if (destinations.includes(stored.requestKey)) join('webhook', `: ${row.id}`);
    }
    if (destinations.length > 0) join('webhook', `: ${TASK}`);
  }
  const instant = nextInstant(world);
  if (left.time > 0 && instant !== undefined) {
    steps.push({ label: `time passes to ${instant}`, world: () => passed(less(world, 'time'), instant) });
  }
  return steps;
}

const keyOf = (world: World): string =>
  hash(
    'sha1',
    JSON.stringify(world, (_, value: unknown) => (value instanceof Map ? [...value] : value)),
    'base64',
  );

async function first({ seller, creators, left }: Scenario, broken: Broken): Promise<World> {
  let world: World = {
    now: 1000,
    rows: [
      {
        kind: 'route',
        sender: SELLER,
        id: 'signature',
        value: '{}',
        dueAt: null,
        list: null,
        expiresAt: null,
      },
    ],
    actors: [],
    seller,
    requests: new Map(),
    accepted: new Map(),
    isFinished: false,
    event: 'none',
    names: {},
    calls: [],
    polls: [],
    left,
    breach: undefined,
  };
  for (let order = 1; order <= creators; order += 1) {
    const name = `creator ${order}`;
    world = await joined(world, 'creator', name, broken);
    // It counts what is open, of which there is nothing yet.
    while (world.actors.at(-1)?.next === 'store: page') world = await advanced(world, name, broken, false);
  }
  return world;
}

export interface Explored {
  readonly states: number;
  /** How far operations came, in all states. */
  readonly seen: ReadonlySet<string>;
  readonly breach?: Breach & { readonly trace: readonly string[] };
}

interface Way {
  readonly label: string;
  readonly before: Way | undefined;
}

function traceOf(way: Way | undefined): readonly string[] {
  const trace: string[] = [];
  for (let at = way; at; at = at.before) trace.unshift(at.label);
  return trace;
}

/** Visits every state, nearest first, and stops at the first in which something does not hold. */
export async function explore(scenario: Scenario, broken: Broken = {}): Promise<Explored> {
  const initial = await first(scenario, broken);
  const known = new Set([keyOf(initial)]);
  const seen = new Set<string>();
  let level: { readonly world: World; readonly way: Way | undefined }[] = [
    { world: initial, way: undefined },
  ];
  while (level.length > 0) {
    const farther: typeof level = [];
    for (const { world, way } of level) {
      for (const { stored } of operationsIn(world)) seen.add(stored.state);
      const breach = judge(world);
      if (breach) return { states: known.size, seen, breach: { ...breach, trace: traceOf(way) } };
      for (const { label, world: then } of nextOf(world, broken)) {
        const reached = await then();
        const key = keyOf(reached);
        if (known.has(key)) continue;
        known.add(key);
        const states = operationsIn(reached).map(({ stored }) => stored.state);
        farther.push({ world: reached, way: { label: `${label} (${states.join(', ')})`, before: way } });
      }
    }
    level = farther;
  }
  return { states: known.size, seen };
}
