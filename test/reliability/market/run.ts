import { setTimeout as sleep } from 'node:timers/promises';
import type { OperationQuery, OperationSeen, Registrations } from '../../../src/registrations/index.ts';
import { figuresOf } from '../processes/figures.ts';
import { type GroundOptions, type Noted, TIMES } from '../processes/ground.ts';
import { observeUntilSafe } from '../processes/observe.ts';
import { inTurns, strikesOf } from '../processes/strikes.ts';
import type { Mode, Role } from '../processes/wire.ts';
import type { CrashPoint, Order } from './buyer.ts';
import { judgeMarket, type MarketFacts, type MarketVerdict, toldByKey } from './judge.ts';
import { statusOf } from './poll.ts';
import { type Market, onMarket } from './on-market.ts';
import { isMade, orderAt } from './orders.ts';
import type { AgentPolicy, SellerLine } from './wire.ts';

export interface RunOptions extends Pick<
  GroundOptions,
  'kind' | 'mode' | 'seed' | 'deadlineMs' | 'breaks' | 'shared'
> {
  readonly orders: number;
  /** kill -9 of buyers by the driver, beside those that die at a point of a call. */
  readonly kills: number;
  /** kill -9 of the seller. */
  readonly sellerKills: number;
  /** Orders under way at once. */
  readonly concurrency: number;
  readonly agents?: readonly AgentPolicy[];
  /** Of so many orders one dies at a point of its call. Prime to the number of agents: all have them. */
  readonly diesOf: number;
  /** Where, in turn; every point by default. */
  readonly points?: readonly CrashPoint[];
  /** A mistake that the judge has to find. */
  readonly registersLate?: true;
  /** A mistake that the judge has to find: no call that was not answered is repeated, of whichever agent. */
  readonly orphansAll?: true;
}

export interface Result {
  readonly verdict: MarketVerdict;
  readonly figures: Readonly<Record<string, number | string>>;
  /** Points of calls at which processes died. */
  readonly points: readonly string[];
  /** Answers that no seller should get: anything but 2xx and 503. */
  readonly unexpected: readonly string[];
}

/** Orders go to each in turn. */
const AGENTS: readonly AgentPolicy[] = [
  { name: 'prompt', transport: 'tool', drops: 0 },
  { name: 'lossy', transport: 'agent 1.0', drops: 30 },
  { name: 'silent', transport: 'tool', drops: 100 },
  { name: 'forgetful', transport: 'agent 0.3', drops: 30, forgets: true },
  { name: 'prompt-agent', transport: 'agent 0.3', drops: 0 },
  { name: 'lossy-tool', transport: 'tool', drops: 30 },
  { name: 'unregistered', transport: 'agent 1.0', drops: 0, refuses: true },
  { name: 'forgetful-tool', transport: 'tool', drops: 30, forgets: true },
];

/**
 * Where a buyer dies where none refuses the registration. `after observe` is reached by one order in six: the first answer has to
 * come, and to be the end.
 */
const POINTS: readonly CrashPoint[] = [
  'after call',
  'after create',
  'in call',
  'after settle',
  'after observe',
  'before create',
  'after observe',
  'after observe',
  'after observe',
];

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door'],
  inbox: ['both', 'both', 'both'],
};
const CALL_MS = 2_000;
const LOOK_MS = 50;
/** The longest time between two polls of the same task, ms. Nothing that is asserted depends on it. */
const APART_MS = 120;

/** All that a run has. */
interface Field extends Market {
  readonly options: RunOptions;
}

/** Asks the seller for a task, and tells a buyer what it says. */
async function poll({ ground }: Field, operation: OperationSeen): Promise<void> {
  const { agentUrl, operationId, taskType, taskId = '', context } = operation;
  for (;;) {
    ground.signal.throwIfAborted();
    const askedAt = Date.now();
    try {
      const { status, data, at } = await statusOf(agentUrl, taskId);
      await observeUntilSafe(
        ground,
        {
          sender: agentUrl,
          taskId,
          operationId,
          taskType,
          status,
          ...(data !== undefined && { data }),
          ...(context && { context }),
          timestamp: at,
          askedAt,
          source: 'poll',
          observation: at,
        },
        TIMES.timeoutMs,
      );
      return;
    } catch (error) {
      // The seller is dead for a while.
      if (ground.signal.aborted) throw error;
      await sleep(LOOK_MS);
    }
  }
}

/** Some die at a point of their call, some in their handler. */
function ordersOf(field: Field): readonly Order[] {
  const { agents, options } = field;
  return Array.from({ length: options.orders }, (_, index) => {
    const { agent, context, ...order } = orderAt(field, agents, index);
    const { diesOf, orphansAll, points = agent.refuses ? (['after refusal'] as const) : POINTS } = options;
    const dies = index % diesOf === 1 ? points[Math.floor(index / diesOf) % points.length] : undefined;
    return {
      ...order,
      ...((agent.forgets ?? orphansAll) && { requestKeyMs: 0 }),
      ...(dies && { dies }),
      context: {
        ...context,
        ...(index % 29 === 5 && { dies: index % 2 === 0 ? 'before' : 'after' }),
      },
    };
  });
}

/**
 * Gives it to one process, until it is registered: then it is nobody's but the registrations'. Under another name each time, for
 * what a dead process has begun may still come true.
 */
async function give(field: Field, order: Order): Promise<void> {
  if (await isMade(field, order)) return;
  const operations = await everyOperation(field.registrations, { agentUrl: order.agentUrl });
  if (operations.some(({ ref }) => ref === order.name)) return;
  const { dies: _once, ...again } = order;
  await give(field, { ...again, name: `${order.name}'` });
}

/** From the first page to the last. */
export async function everyOperation(
  registrations: Registrations,
  query: Omit<OperationQuery, 'limit'>,
): Promise<OperationSeen[]> {
  const all: OperationSeen[] = [];
  for (let after: string | undefined; ;) {
    const page = await registrations.list({ ...query, limit: 500, ...(after !== undefined && { after }) });
    all.push(...page.operations);
    if (page.next === undefined) return all;
    after = page.next;
  }
}

/** A poll among the webhooks: of one that is open, whichever. */
async function pollOne(field: Field): Promise<void> {
  const { ground, registrations } = field;
  await sleep(ground.random.below(APART_MS));
  const { operations } = await registrations.list({ state: 'open', limit: 100 });
  const withTask = operations.filter(({ taskId }) => taskId !== undefined);
  if (withTask.length > 0) await poll(field, ground.random.pick(withTask));
}

async function giveAll(field: Field): Promise<void> {
  const { ground, options, seller } = field;
  const all = [
    strikesOf(options.kills, options.orders, () => ground.fleet.kill(ground.signal)),
    strikesOf(options.sellerKills, options.orders, () => seller.kill()),
  ];
  let done = 0;
  await inTurns(ordersOf(field), options.concurrency, async (order) => {
    await give(field, order);
    done += 1;
    for (const strikes of all) strikes.notice(done);
    if (done % 3 === 0) await pollOne(field);
  });
  for (const strikes of all) await strikes.rest();
}

/** Waits until no call is to be repeated, and the seller has nothing more to say. */
async function settle({ ground, registrations, seller }: Field): Promise<void> {
  for (;;) {
    ground.signal.throwIfAborted();
    const problem = ground.fleet.problem();
    if (problem) throw problem;
    const { operations } = await registrations.list({ state: 'calling', limit: 1 });
    if (operations.length === 0 && (await seller.outstanding()) === 0) return;
    await sleep(LOOK_MS);
  }
}

/** Webhooks that nobody brings again: inline they are left as they are, but for an end that a poll has told too. */
function givenUp(log: readonly SellerLine[]): ReadonlySet<string> {
  return new Set(
    log.flatMap((line) => (line.what === 'hook-over' && line.how === 'given-up' ? line.key : [])),
  );
}

/** Those of them that tell no end. */
function givenUpOnTheWay(log: readonly SellerLine[]): ReadonlySet<string> {
  const over = givenUp(log);
  const onTheWay = log.flatMap((line) =>
    line.what === 'task'
      ? line.task.hooks.flatMap(({ step, key }) => (step < line.task.steps.length - 1 ? key : []))
      : [],
  );
  return new Set(onTheWay.filter((key) => over.has(key)));
}

/** What the poller does, once for each: asks for all that is watched. What is handled meanwhile may have more watched. */
async function pollTheRest(field: Field): Promise<number> {
  const { ground, registrations, seller } = field;
  const asked = new Set<string>();
  for (;;) {
    await ground.drained(givenUp(seller.log()));
    const watched = await everyOperation(registrations, { state: 'watched' });
    const rest = watched.filter(({ operationId }) => !asked.has(operationId));
    if (rest.length === 0) break;
    for (const operation of rest) {
      asked.add(operation.operationId);
      await poll(field, operation);
    }
  }
  return asked.size;
}

async function play(field: Field): Promise<{ readonly polled: number; readonly noted: Noted }> {
  const { ground, seller } = field;
  await giveAll(field);
  await settle(field);
  const polled = await pollTheRest(field);
  return { polled, noted: await ground.finish(givenUpOnTheWay(seller.log())) };
}

/** Once all is over. */
export async function factsOf(
  { registrations, seller, agents, made }: Market,
  noted: Noted,
): Promise<MarketFacts> {
  const log = seller.log();
  return {
    ...noted,
    tasks: log.flatMap((line) => (line.what === 'task' ? line.task : [])),
    operations: await everyOperation(registrations, {}),
    forgetful: new Set(agents.filter(({ forgets }) => forgets).map((agent) => seller.urlOf(agent))),
    refused: refusedIn(log),
    made,
  };
}

/** Names of orders that the seller has refused. */
function refusedIn(log: readonly SellerLine[]): ReadonlySet<string> {
  const keys = new Set(
    log.flatMap((line) => (line.what === 'answer' && line.said === 'refusal' ? line.requestKey : [])),
  );
  return new Set(
    log.flatMap((line) => (line.what === 'request' && keys.has(line.requestKey) ? line.name : [])),
  );
}

/** Each once, in their order. */
function pointsIn(ledger: MarketFacts['ledger']): string[] {
  return [
    ...new Set(ledger.flatMap((line) => (line.what === 'die' && line.point ? line.point : []))),
  ].toSorted();
}

/** By which channel the results were told that were handled; of the others only the alarm `operation_orphaned` tells. */
function byChannel({ tasks, completions, ledger }: MarketFacts): Record<string, number> {
  const told = toldByKey(ledger);
  const results = new Set(tasks.map(({ resultId }) => resultId));
  const counts = { response: 0, webhook: 0, poll: 0 };
  for (const { key } of completions) {
    const { source, resultId } = told.get(key) ?? {};
    if (resultId !== undefined && results.has(resultId) && source) counts[source as 'poll'] += 1;
  }
  const { response, webhook, poll: polled } = counts;
  return { ...counts, orphanedResults: tasks.length - response - webhook - polled };
}

function countsOf({ options, seller }: Field, facts: MarketFacts, polled: number): Record<string, number> {
  const log = seller.log();
  const count = (what: SellerLine['what']): number => log.filter((line) => line.what === what).length;
  const inState = (state: string): number => facts.operations.filter((one) => one.state === state).length;
  return {
    orders: options.orders,
    requests: count('request'),
    tasks: facts.tasks.length,
    webhooks: count('hook'),
    polls: count('poll'),
    ...byChannel(facts),
    polledAtTheEnd: polled,
    ended: inState('ended'),
    orphaned: inState('orphaned'),
    refused: inState('refused'),
    sellerKills: count('start') - 1,
  };
}

/** Orders to a seller that does its worst, while buyers and the seller are killed; then all ledgers are read. */
export async function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  const { registersLate, agents = AGENTS } = options;
  const buys = { callMs: CALL_MS, ...(registersLate && { registersLate }) };
  return onMarket({ ...options, ...TIMES, roles: ROLES[options.mode], buys, agents }, async (market) => {
    const field = { ...market, options };
    const { ground, seller } = market;
    const { polled, noted } = await play(field);
    const facts = await factsOf(field, noted);
    const verdict = judgeMarket(facts);
    return {
      verdict,
      figures: {
        ...countsOf(field, facts, polled),
        ...figuresOf(options, ground, facts, verdict, began),
      },
      points: pointsIn(facts.ledger),
      unexpected: seller
        .log()
        .flatMap((line) =>
          line.what === 'hook' && line.answered !== undefined && line.answered >= 300 && line.answered !== 503
            ? `${line.key}: ${line.answered}`
            : [],
        ),
    };
  });
}
