import { setTimeout as sleep } from 'node:timers/promises';
import type { Observation } from '../../../src/index.ts';
import { samplePayloads } from '../../../src/testing/index.ts';
import { type Figures, figuresOf } from '../processes/figures.ts';
import { type Ground, type GroundOptions, type Noted, onGround, TIMES } from '../processes/ground.ts';
import { judge, type Verdict } from '../processes/judge.ts';
import type { Random } from '../processes/random.ts';
import { observeUntilSafe } from '../processes/observe.ts';
import { AGENT_URL } from '../processes/seller.ts';
import { inTurns, strikesOf } from '../processes/strikes.ts';
import type { Mode, Orders, Role } from '../processes/wire.ts';

/** How the end of one task comes to the buyer. */
type Channel = 'webhook' | 'poll' | 'response';

/** Of each in turn. Those that are named twice are told twice at once. */
const WAYS: readonly (readonly Channel[])[] = [
  ['webhook', 'poll'],
  ['poll'],
  ['webhook'],
  ['webhook', 'poll', 'poll'],
  ['response', 'webhook'],
  ['webhook', 'response', 'poll'],
];

export interface RunOptions extends Pick<
  GroundOptions,
  'kind' | 'mode' | 'seed' | 'deadlineMs' | 'breaks' | 'shared'
> {
  readonly tasks: number;
  /** kill -9. */
  readonly kills: number;
  /** Tasks whose end is told at once. */
  readonly concurrency: number;
}

export interface Result {
  readonly verdict: Verdict;
  readonly figures: Figures & Driven;
  readonly unexpected: readonly string[];
}

/** What was truly driven. */
interface Driven {
  /** Tasks whose end was completed, and had its effect. */
  readonly tasks: number;
  /** Of the reports of ends those that the buyer has said are safe. */
  readonly told: number;
}

interface Task {
  readonly name: string;
  readonly ways: readonly Channel[];
  readonly orders: Orders;
  /** Of all events by which its end was told. */
  readonly keys: Set<string>;
}

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door'],
  inbox: ['both', 'both', 'both'],
};
/** The longest time between two channels, ms. Nothing that is asserted depends on it. */
const APART_MS = 30;

function tasksOf({ tasks }: RunOptions, hasTransactions: boolean, random: Random): Task[] {
  return Array.from({ length: tasks }, (_, index) => ({
    name: `task-${index}`,
    ways: WAYS[index % WAYS.length] ?? [],
    orders: {
      inTransaction: hasTransactions,
      takesMs: random.below(20),
      ...(index % 7 === 3 && { fails: 'after' }),
      ...(index % 17 === 5 && { dies: index % 2 === 0 ? 'before' : 'after' }),
    },
    keys: new Set<string>(),
  }));
}

const AT = '2026-01-01T12:00:00Z';

/** @returns true: only then does it end. */
async function observe(ground: Ground, task: Task, observation: Observation): Promise<boolean> {
  task.keys.add(await observeUntilSafe(ground, observation, TIMES.timeoutMs));
  return true;
}

/** A poll knows the task and the operation; an answer that ends the call names the operation alone. @returns whether it is safe. */
async function tell(ground: Ground, task: Task, channel: Channel): Promise<boolean> {
  await sleep(ground.random.below(APART_MS));
  const { name, orders } = task;
  const operation = `operation-of-${name}`;
  const result = { media_buy_id: name };
  if (channel === 'webhook') {
    const key = `webhook-of-the-end-of-${name}`;
    task.keys.add(key);
    const more = {
      idempotency_key: key,
      task_id: name,
      operation_id: operation,
      timestamp: AT,
      result,
      context: orders,
    };
    return ground.seller.deliver(samplePayloads().tool('completed', more), 'either');
  }
  return observe(ground, task, {
    sender: AGENT_URL,
    ...(channel === 'poll' && { taskId: name }),
    operationId: operation,
    taskType: 'create_media_buy',
    status: 'completed',
    data: result,
    context: orders,
    ...(channel === 'poll' && ground.random.below(2) === 0 && { timestamp: AT }),
    askedAt: Date.now(),
    source: channel,
    observation: 'the end',
  });
}

/** Kills at even shares of the tasks whose end was told. @returns with what was noted how many reports are safe. */
async function play(
  ground: Ground,
  tasks: readonly Task[],
  { kills, concurrency }: RunOptions,
): Promise<{ readonly noted: Noted; readonly told: number }> {
  const strikes = strikesOf(kills, tasks.length, () => ground.fleet.kill(ground.signal));
  let over = 0;
  let told = 0;
  await inTurns(tasks, concurrency, async (task) => {
    const safe = await Promise.all(task.ways.map((channel) => tell(ground, task, channel)));
    told += safe.filter(Boolean).length;
    over += 1;
    strikes.notice(over);
  });
  await strikes.rest();
  return { noted: await ground.finish(), told };
}

/** How many of the tasks have an end that was completed, and one that has an effect. */
function handledOf(tasks: readonly Task[], { completions, ledger, effects }: Noted): number {
  const completed = new Set(completions.map(({ key }) => key));
  const outside = ledger.filter(({ what }) => what === 'effect');
  const handled = new Set([...effects, ...outside].map(({ key }) => key));
  return tasks.filter(({ keys }) => [...keys].some((key) => completed.has(key) && handled.has(key))).length;
}

/** The end of each task told by several channels at once, while processes are killed; then the ledgers are read. */
export function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  const roles = ROLES[options.mode];
  return onGround({ ...options, ...TIMES, roles, observes: true }, async (ground) => {
    const tasks = tasksOf(options, ground.backend.hasTransactions, ground.random);
    const { noted, told } = await play(ground, tasks, options);
    const verdict = judge({ ...noted, owed: tasks });
    return {
      verdict,
      unexpected: ground.seller.unexpected,
      figures: {
        tasks: handledOf(tasks, noted),
        told,
        ...figuresOf(options, ground, noted, verdict, began),
      },
    };
  });
}
