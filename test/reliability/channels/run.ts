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
  readonly figures: Figures & { readonly tasks: number; readonly told: number };
  readonly unexpected: readonly string[];
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

async function observe(ground: Ground, task: Task, observation: Observation): Promise<void> {
  task.keys.add(await observeUntilSafe(ground, observation, TIMES.timeoutMs));
}

/** A poll knows the task and the operation; an answer that ends the call names the operation alone. */
async function tell(ground: Ground, task: Task, channel: Channel): Promise<void> {
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
    await ground.seller.deliver(samplePayloads().tool('completed', more), 'either');
    return;
  }
  await observe(ground, task, {
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

/** Kills at even shares of what was told. */
async function play(
  ground: Ground,
  tasks: readonly Task[],
  { kills, concurrency }: RunOptions,
): Promise<Noted> {
  const strikes = strikesOf(kills, tasks.length, () => ground.fleet.kill(ground.signal));
  let told = 0;
  await inTurns(tasks, concurrency, async (task) => {
    await Promise.all(task.ways.map((channel) => tell(ground, task, channel)));
    told += 1;
    strikes.notice(told);
  });
  await strikes.rest();
  return ground.finish();
}

/** The end of each task told by several channels at once, while processes are killed; then the ledgers are read. */
export function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  const roles = ROLES[options.mode];
  return onGround({ ...options, ...TIMES, roles, observes: true }, async (ground) => {
    const tasks = tasksOf(options, ground.backend.hasTransactions, ground.random);
    const noted = await play(ground, tasks, options);
    const verdict = judge({ ...noted, owed: tasks });
    return {
      verdict,
      unexpected: ground.seller.unexpected,
      figures: {
        tasks: tasks.length,
        told: tasks.reduce((sum, { ways }) => sum + ways.length, 0),
        ...figuresOf(options, ground, noted, verdict, began),
      },
    };
  });
}
