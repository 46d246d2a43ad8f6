import { setTimeout as sleep } from 'node:timers/promises';
import { judgeMarket, type MarketVerdict } from '../market/judge.ts';
import { everyOperation, factsOf } from '../market/run.ts';
import { type Market, onMarket } from '../market/on-market.ts';
import { isMade, orderAt } from '../market/orders.ts';
import type { AgentPolicy, SellerLine } from '../market/wire.ts';
import { figuresOf } from '../processes/figures.ts';
import { type GroundOptions, type Noted, TIMES } from '../processes/ground.ts';
import { inTurns } from '../processes/strikes.ts';
import type { Polls, Role } from '../processes/wire.ts';
import { pollFigures } from './figures.ts';
import { judgePolls, type PollVerdict } from './judge.ts';

export interface RunOptions extends Pick<GroundOptions, 'kind' | 'mode' | 'seed' | 'deadlineMs' | 'shared'> {
  readonly orders: number;
  /** kill -9 of a process whose poll is under way and is not answered: so many. */
  readonly kills: number;
  /** Orders under way at once. */
  readonly concurrency: number;
  /** The longest time between two statuses of a task, ms. */
  readonly withinMs: number;
  readonly polls: Polls;
  /** What the judge has to find: it is of all pollers, and the judge is not told. */
  readonly mistake?: Pick<Polls, 'breaks'> & Partial<Pick<Polls, 'perSeller'>>;
}

export interface Result {
  readonly verdict: MarketVerdict & PollVerdict;
  readonly figures: Readonly<Record<string, unknown>>;
  /** Polls that ended with the process that made them. */
  readonly killed: readonly string[];
  /** Operations whose task is polled no more, and has not ended. */
  readonly unresolved: readonly string[];
}

const COMMON = { pollMs: 300, hangs: 6, isPatient: true } as const;

/** Orders go to each in turn. */
const AGENTS: readonly AgentPolicy[] = [
  { name: 'all', transport: 'tool', drops: 0, ...COMMON },
  { name: 'lossy', transport: 'agent 1.0', drops: 30, ...COMMON },
  { name: 'none', transport: 'tool', drops: 100, ...COMMON },
];

const ROLES: readonly Role[] = ['both', 'both', 'both'];
/** Until another process repeats a call of an operation. */
const CALL_MS = 2_000;
const LOOK_MS = 20;

interface Field extends Market {
  readonly options: RunOptions;
}

function give(field: Field, index: number): Promise<boolean> {
  const { agent: _agent, ...order } = orderAt(field, AGENTS, index);
  return isMade(field, order);
}

/** Nobody is killed meanwhile: what has no answer yet is registered, and is repeated. */
async function giveAll(field: Field): Promise<void> {
  const { orders, concurrency } = field.options;
  await inTurns([...Array(orders).keys()], concurrency, (index) => give(field, index));
}

/** The poll that is under way for longest: one that the seller leaves hanging, where there is one. */
function underWay(log: readonly SellerLine[]): { readonly id: string; readonly taskId: string } | undefined {
  const over = new Set(log.flatMap((line) => (line.what === 'polled' || line.what === 'cut' ? line.id : [])));
  return log.find((line) => line.what === 'poll' && !over.has(line.id)) as
    (SellerLine & { readonly what: 'poll' }) | undefined;
}

/** Until what was begun has ended, one way or the other. */
async function endOf({ ground, seller }: Field, pollId: string): Promise<'polled' | 'cut'> {
  for (;;) {
    ground.signal.throwIfAborted();
    const line = seller
      .log()
      .find((one) => (one.what === 'polled' || one.what === 'cut') && one.id === pollId);
    if (line) return line.what as 'polled' | 'cut';
    await sleep(LOOK_MS);
  }
}

async function isOver({ registrations, seller }: Field): Promise<boolean> {
  for (const state of ['calling', 'watched'] as const) {
    const { operations } = await registrations.list({ state, limit: 1 });
    if (operations.length > 0) return false;
  }
  return (await seller.outstanding()) === 0;
}

/**
 * Kills processes amid their polls. A poll may be answered all the same, and all may be over before enough were cut: there
 * are more orders then, one of each agent. @returns the polls, as many as there are kills in the options.
 */
async function killPollers(field: Field): Promise<string[]> {
  const { ground, options, seller } = field;
  const killed: string[] = [];
  let { orders } = options;
  while (killed.length < options.kills) {
    ground.signal.throwIfAborted();
    if (await isOver(field)) {
      for (const end = orders + AGENTS.length; orders < end; orders += 1) await give(field, orders);
    }
    const poll = underWay(seller.log());
    const asked =
      poll && ground.ledger.read().findLast((line) => line.what === 'ask' && line.taskId === poll.taskId);
    if (!poll || asked?.what !== 'ask' || !ground.fleet.killThis(asked.pid)) {
      await sleep(LOOK_MS);
      continue;
    }
    if ((await endOf(field, poll.id)) === 'cut') killed.push(poll.id);
    await ground.fleet.whole(ground.signal);
  }
  return killed;
}

async function play(field: Field): Promise<{ readonly killed: readonly string[]; readonly noted: Noted }> {
  const { ground } = field;
  await giveAll(field);
  const killed = await killPollers(field);
  while (!(await isOver(field))) {
    ground.signal.throwIfAborted();
    const problem = ground.fleet.problem();
    if (problem) throw problem;
    await sleep(LOOK_MS);
  }
  return { killed, noted: await ground.finish() };
}

async function resultOf(field: Field): Promise<Result> {
  const began = performance.now();
  const { options, ground, seller, registrations } = field;
  const { killed, noted } = await play(field);
  const facts = await factsOf(field, noted);
  const log = seller.log();
  const unresolved = await everyOperation(registrations, { state: 'unresolved' });
  const polls = judgePolls({ log, ledger: facts.ledger, perSeller: options.polls.perSeller });
  const verdict = { ...judgeMarket(facts), ...polls };
  return {
    verdict,
    figures: {
      ...pollFigures(AGENTS, facts, log, killed),
      ...figuresOf(options, ground, facts, verdict, began),
      kills: killed.length,
      killsBetweenPolls: ground.fleet.kills() - killed.length,
    },
    killed,
    unresolved: unresolved.map(({ operationId }) => operationId),
  };
}

/** Orders to a seller that drops webhooks; pollers alone find what it does not tell, and are killed amid their polls. */
export function run(options: RunOptions): Promise<Result> {
  const buys = { callMs: CALL_MS, polls: { ...options.polls, ...options.mistake } };
  // More than are to be killed, for those of a seller hang together and may end while one is killed; and for long enough
  // that no machine is too slow to see one.
  const { withinMs, kills, polls } = options;
  const agents = AGENTS.map((agent) => ({
    ...agent,
    withinMs,
    holds: agent.drops === 100 ? kills + polls.perSeller : 0,
  }));
  return onMarket({ ...options, ...TIMES, roles: ROLES, buys, agents }, (market) =>
    resultOf({ ...market, options }),
  );
}
