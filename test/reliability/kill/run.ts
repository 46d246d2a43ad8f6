import { setTimeout as sleep } from 'node:timers/promises';
import { type Figures, figuresOf } from '../processes/figures.ts';
import { type Ground, type GroundOptions, type Noted, onGround, TIMES } from '../processes/ground.ts';
import { type Facts, type FinalState, judge, type Verdict } from '../processes/judge.ts';
import { inTurns, type Strikes, strikesOf } from '../processes/strikes.ts';
import type { Mode, Role } from '../processes/wire.ts';
import { owedOf, placesOf, type Traffic, trafficOf, type TrafficOptions } from './traffic.ts';

/** What a seller was told, and what became of it. */
interface KillFigures extends Figures {
  readonly events: number;
  readonly acknowledged: number;
  /** Processes that stopped in a handler, the last of them until its lease was another's. */
  readonly pauses: number;
  /** Handlers that threw. */
  readonly failures: number;
  /** Of the deaths, pauses and failures those of events that write in `ctx.transaction`. */
  readonly deathsInTransaction: number;
  readonly pausesInTransaction: number;
  readonly failuresInTransaction: number;
  /** Pauses in a transaction after which the process went on when another one had completed the event. */
  readonly overtakenInTransaction: number;
  readonly posts: number;
  readonly unanswered: number;
  readonly told503: number;
  readonly toldReplayed: number;
  readonly completed: number;
  readonly stale: number;
  /** Runs of handlers beyond the first of an event. */
  readonly reruns: number;
  /** Effects outside the store that happened more than once: what `ctx.transaction` is for. */
  readonly outsideAgain: number;
  readonly inTransaction: number;
}

function toldAndDone(
  { seller, acknowledged, traffic, overtaken }: Field,
  { owed, completions, ledger, effects }: Facts,
): Omit<KillFigures, keyof Figures> {
  const within = new Set(traffic.events.flatMap(({ key, orders }) => (orders.inTransaction ? key : [])));
  const inTransaction = (keys: readonly string[]): number => keys.filter((key) => within.has(key)).length;
  const lines = (what: string): readonly string[] =>
    ledger.filter((line) => line.what === what).map(({ key }) => key);
  const beyondFirst = (keys: readonly string[]): number => keys.length - new Set(keys).size;
  return {
    events: owed.length,
    acknowledged: acknowledged.size,
    pauses: lines('pause').length,
    failures: lines('fail').length,
    deathsInTransaction: inTransaction(lines('die')),
    pausesInTransaction: inTransaction(lines('pause')),
    failuresInTransaction: inTransaction(lines('fail')),
    overtakenInTransaction: inTransaction(lines('woke').filter((key) => overtaken.has(key))),
    posts: seller.tally.attempts,
    unanswered: seller.tally.unanswered,
    told503: seller.tally.unavailable,
    toldReplayed: seller.tally.replayed,
    completed: completions.length,
    stale: owed.filter(({ state }) => state === 'stale').length,
    reruns: beyondFirst(lines('run')),
    outsideAgain: beyondFirst(lines('effect')),
    inTransaction: effects.length,
  };
}

export interface RunOptions
  extends
    Omit<TrafficOptions, 'hasTransactions' | 'canStopWithin'>,
    Pick<GroundOptions, 'kind' | 'mode' | 'seed' | 'deadlineMs' | 'breaks' | 'shared'> {
  /** kill -9, by the driver. */
  readonly kills: number;
  /** Deliveries under way at once. */
  readonly concurrency: number;
  /** A process each; three by default, two of them doors. */
  readonly roles?: readonly Role[];
}

interface Result {
  readonly verdict: Verdict;
  readonly figures: KillFigures;
  /** Answers that no seller should get. */
  readonly unexpected: readonly string[];
}

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door'],
  inbox: ['door', 'both', 'worker'],
};

const LOOK_MS = 15;

interface Field extends Ground {
  readonly options: RunOptions;
  readonly traffic: Traffic;
  readonly acknowledged: Set<string>;
  /** Keys of events that were applied while a process that had a handler of theirs was stopped. */
  readonly overtaken: Set<string>;
}

/**
 * Lets stopped processes go on once what they were at is done by another one. Only the last one waits for that: were
 * all who work stopped at once, nobody would do it.
 */
async function letGo({ fleet, stateOf, overtaken }: Field, stopped: Map<number, string>): Promise<void> {
  const last = [...stopped.keys()].at(-1);
  for (const [pid, key] of stopped) {
    fleet.pause(pid);
    const state = await stateOf(key);
    if (pid === last && (state === 'queued' || state === 'leased')) continue;
    if (state === 'applied') overtaken.add(key);
    fleet.resume(pid);
    stopped.delete(pid);
  }
}

/** Watches the ledger until `over`, and until nobody is stopped any more. */
async function watch(field: Field, { notice }: Strikes, over: AbortSignal): Promise<void> {
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
const sell = ({ options, traffic, seller, acknowledged }: Field): Promise<void> =>
  inTurns(traffic.deliveries, options.concurrency, async ({ event, copy }) => {
    if (await seller.deliver(event.payload(copy), 'either')) acknowledged.add(event.key);
  });

async function play(field: Field): Promise<Noted> {
  const over = new AbortController();
  const { fleet, signal, options, traffic } = field;
  // Acknowledged and completed. Of statuses that end stale no handler tells: not all of them count twice.
  const strikes = strikesOf(options.kills, 1.5 * traffic.events.length, () => fleet.kill(signal));
  const watching = watch(field, strikes, over.signal);
  // It rejects where the run does; it is awaited later.
  watching.catch(() => undefined);
  await sell(field);
  await strikes.rest();
  await field.drained();
  over.abort();
  await watching;
  return field.finish();
}

async function factsOf({ traffic, stateOf, acknowledged }: Field, noted: Noted): Promise<Facts> {
  const states = new Map<string, FinalState>();
  for (const { key } of traffic.events) states.set(key, await stateOf(key));
  const { events } = traffic;
  return { ...noted, owed: owedOf(events, acknowledged, states), places: placesOf(events) };
}

/** Processes, load and kills on one store; then the ledgers are read. */
export function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  return onGround({ ...options, ...TIMES, roles: options.roles ?? ROLES[options.mode] }, async (ground) => {
    const { backend, random, seller } = ground;
    const { hasTransactions, canStopWithin } = backend;
    const traffic = trafficOf({ ...options, hasTransactions, canStopWithin }, random);
    const field = {
      ...ground,
      options,
      traffic,
      acknowledged: new Set<string>(),
      overtaken: new Set<string>(),
    };
    const facts = await factsOf(field, await play(field));
    const verdict = judge(facts);
    return {
      verdict,
      unexpected: seller.unexpected,
      figures: { ...toldAndDone(field, facts), ...figuresOf(options, ground, facts, verdict, began) },
    };
  });
}
