import { setTimeout as sleep } from 'node:timers/promises';
import { type FinalState, type Ground, type GroundOptions, onGround } from '../processes/ground.ts';
import type { Tally } from '../processes/seller.ts';
import type { Mode, Role } from '../processes/wire.ts';
import { type Facts, judge, type KillVerdict } from './judge.ts';
import { type Traffic, trafficOf, type TrafficOptions } from './traffic.ts';

/** A run in numbers, for docs/reliability.md. */
interface Figures {
  readonly store: string;
  readonly mode: string;
  readonly seed: number;
  readonly events: number;
  readonly acknowledged: number;
  /** kill -9 by the driver. */
  readonly kills: number;
  /** Processes that killed themselves in a handler, and that stopped in one until their lease was another's. */
  readonly deaths: number;
  readonly pauses: number;
  readonly starts: number;
  readonly posts: number;
  readonly unanswered: number;
  readonly told503: number;
  readonly toldReplayed: number;
  readonly completed: number;
  readonly stale: number;
  /** Runs of handlers beyond the first of an event: after kills, pauses, lapsed leases and failures. */
  readonly reruns: number;
  /** Effects outside the store that happened more than once: what `ctx.transaction` is for. */
  readonly outsideAgain: number;
  readonly inTransaction: number;
  readonly lost: number;
  readonly completedTwice: number;
  readonly effectsTwice: number;
  readonly seconds: number;
}

interface Measured {
  readonly tally: Tally;
  readonly kills: number;
  readonly starts: number;
  readonly seconds: number;
}

function figuresOf(options: RunOptions, facts: Facts, verdict: KillVerdict, measured: Measured): Figures {
  const lines = (what: string): readonly string[] =>
    facts.ledger.filter((line) => line.what === what).map(({ key }) => key);
  const beyondFirst = (keys: readonly string[]): number => keys.length - new Set(keys).size;
  const { tally, kills, starts, seconds } = measured;
  return {
    store: options.kind,
    mode: options.mode,
    seed: options.seed,
    events: facts.events.length,
    acknowledged: facts.acknowledged.size,
    kills,
    deaths: lines('die').length,
    pauses: lines('pause').length,
    starts,
    posts: tally.attempts,
    unanswered: tally.unanswered,
    told503: tally.unavailable,
    toldReplayed: tally.replayed,
    completed: facts.completions.length,
    stale: [...facts.states.values()].filter((state) => state === 'stale').length,
    reruns: beyondFirst(lines('run')),
    outsideAgain: beyondFirst(lines('effect')),
    inTransaction: facts.effects.length,
    lost: verdict.lost.length,
    completedTwice: verdict.completedTwice.length,
    effectsTwice: verdict.effectsTwice.length,
    seconds: Math.round(seconds),
  };
}

export interface RunOptions
  extends
    Omit<TrafficOptions, 'hasTransactions'>,
    Pick<GroundOptions, 'kind' | 'mode' | 'seed' | 'deadlineMs' | 'breaks' | 'shared'> {
  /** kill -9, by the driver. */
  readonly kills: number;
  /** Deliveries under way at once. */
  readonly concurrency: number;
  /** A process each; three by default, two of them doors. */
  readonly roles?: readonly Role[];
}

interface Result {
  readonly verdict: KillVerdict;
  readonly figures: Figures;
  /** Answers that no seller should get. */
  readonly unexpected: readonly string[];
}

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door'],
  inbox: ['door', 'both', 'worker'],
};

/**
 * A lease is over soon after its owner's death. On a slow machine that of a living one can be, too: what is judged are
 * completions, which no lease that ran out can have.
 */
const TIMES = { leaseMs: 1_000, waitMs: 2_000, timeoutMs: 3_000 } as const;

const LOOK_MS = 15;

interface Field extends Ground {
  readonly options: RunOptions;
  readonly traffic: Traffic;
  readonly acknowledged: Set<string>;
}

interface Striker {
  /** @param progress acknowledged and completed events so far. */
  readonly notice: (progress: number) => void;
  /** Whatever kills are left. */
  readonly rest: () => Promise<void>;
}

/** Strikes as the work goes on, not as time passes: at even shares of it. */
function strikerOf({ fleet, signal, options, traffic }: Field): Striker {
  // Of statuses that end stale no handler tells: not all of them count twice.
  const step = Math.max(1, Math.floor((1.5 * traffic.events.length) / (options.kills + 1)));
  let due = 0;
  let last: Promise<void> = Promise.resolve();
  const strikeUpTo = (kills: number): void => {
    for (let left = kills - due; left > 0; left -= 1) {
      last = last.then(() => fleet.kill(signal));
      last.catch(() => undefined);
    }
    due = Math.max(due, kills);
  };
  return {
    notice: (progress) => strikeUpTo(Math.min(options.kills, Math.floor(progress / step))),
    rest: async () => {
      strikeUpTo(options.kills);
      await last;
    },
  };
}

/**
 * Lets stopped processes go on once what they were at is done by another one. Only the last one waits for that: were
 * all who work stopped at once, nobody would do it.
 */
async function letGo({ fleet, stateOf }: Field, stopped: Map<number, string>): Promise<void> {
  const last = [...stopped.keys()].at(-1);
  for (const [pid, key] of stopped) {
    fleet.pause(pid);
    const state = await stateOf(key);
    if (pid === last && (state === 'queued' || state === 'leased')) continue;
    fleet.resume(pid);
    stopped.delete(pid);
  }
}

/** Watches the ledger until `over`, and until nobody is stopped any more. */
async function watch(field: Field, { notice }: Striker, over: AbortSignal): Promise<void> {
  const told = new Set<string>();
  const stopped = new Map<number, string>();
  for (let seen = 0; !over.aborted || stopped.size > 0;) {
    field.signal.throwIfAborted();
    const lines = field.ledger.read();
    for (; seen < lines.length; seen += 1) {
      const line = lines[seen];
      if (line?.what === 'told') told.add(line.key);
      if (line?.what === 'pause') stopped.set(line.pid, line.key);
    }
    notice(field.acknowledged.size + told.size);
    await letGo(field, stopped);
    await sleep(LOOK_MS);
  }
}

/** So many deliveries at once, until each has its final answer. */
async function sell({ options, traffic, seller, acknowledged }: Field): Promise<void> {
  const waiting = traffic.deliveries.values();
  const sellInTurn = async (): Promise<void> => {
    for (const { event, copy } of waiting) {
      if (await seller.deliver(event.payload(copy), 'either')) acknowledged.add(event.key);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, sellInTurn));
}

/** Stores look again after ten minutes at what nobody was told of. A backlog that lasts so long has been forgotten. */
const DRAIN_MS = 300_000;

async function drain({ drained, left }: Field): Promise<void> {
  const before = await left();
  const done = new AbortController();
  const late = async (): Promise<never> => {
    await sleep(DRAIN_MS, undefined, { signal: done.signal });
    const after = await left();
    throw new Error(
      `events were left waiting for ${DRAIN_MS} ms after the last delivery: ${before}, then ${after}`,
    );
  };
  try {
    await Promise.race([drained(), late()]);
  } finally {
    done.abort();
  }
}

async function play(field: Field): Promise<void> {
  const over = new AbortController();
  const striker = strikerOf(field);
  const watching = watch(field, striker, over.signal);
  // It rejects where the run does; it is awaited later.
  watching.catch(() => undefined);
  await sell(field);
  await striker.rest();
  await drain(field);
  over.abort();
  await watching;
  await field.fleet.whole(field.signal);
  await field.fleet.stop();
}

async function factsOf({ traffic, stateOf, acknowledged, backend, ledger }: Field): Promise<Facts> {
  const states = new Map<string, FinalState>();
  for (const { key } of traffic.events) states.set(key, await stateOf(key));
  return {
    events: traffic.events,
    acknowledged,
    states,
    completions: await backend.completions(),
    ledger: ledger.read(),
    effects: await backend.effects(),
  };
}

/** Processes, load and kills on one store; then the ledgers are read. */
export function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  return onGround({ ...options, ...TIMES, roles: options.roles ?? ROLES[options.mode] }, async (ground) => {
    const { backend, random, seller, fleet } = ground;
    const traffic = trafficOf({ ...options, hasTransactions: backend.hasTransactions }, random);
    const field = { ...ground, options, traffic, acknowledged: new Set<string>() };
    await play(field);
    const facts = await factsOf(field);
    const verdict = judge(facts);
    const seconds = (performance.now() - began) / 1000;
    const measured = { tally: seller.tally, kills: fleet.kills(), starts: fleet.starts(), seconds };
    return {
      verdict,
      unexpected: seller.unexpected,
      figures: figuresOf(options, facts, verdict, measured),
    };
  });
}
