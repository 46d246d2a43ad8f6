import { setTimeout as sleep } from 'node:timers/promises';
import type { Observation } from '../../../src/events/observation.ts';
import { samplePayloads } from '../../../src/testing/payloads.ts';
import { type Ground, type GroundOptions, onGround } from '../processes/ground.ts';
import type { Random } from '../processes/random.ts';
import { observeUntilSafe } from '../processes/observe.ts';
import { AGENT_URL } from '../processes/seller.ts';
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

/** Each by its tasks. All empty: the promise was kept. */
export interface ChannelsVerdict {
  /** Told to the buyer, and no handler completed it. */
  readonly lost: readonly string[];
  /** More than one event of it was completed, or one event by two owners. */
  readonly completedTwice: readonly string[];
  /** Its handlers' effect in the transaction is there more than once, or not at all. */
  readonly effectsWrong: readonly string[];
}

export interface Result {
  readonly verdict: ChannelsVerdict;
  readonly figures: Readonly<Record<string, number | string>>;
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
const TIMES = { leaseMs: 1_000, waitMs: 2_000, timeoutMs: 3_000 } as const;
/** The longest time between two channels, ms. Nothing that is asserted depends on it. */
const APART_MS = 30;
const FAR_MS = 300_000;

function tasksOf({ tasks }: RunOptions, hasTransactions: boolean, random: Random): Task[] {
  return Array.from({ length: tasks }, (_, index) => ({
    name: `task-${index}`,
    ways: WAYS[index % WAYS.length] ?? [],
    orders: {
      inTransaction: hasTransactions,
      takesMs: random.below(20),
      ...(index % 7 === 3 && { fails: true }),
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
): Promise<void> {
  const waiting = tasks.values();
  let told = 0;
  let due = 0;
  let last: Promise<void> = Promise.resolve();
  const tellInTurn = async (): Promise<void> => {
    for (const task of waiting) {
      await Promise.all(task.ways.map((channel) => tell(ground, task, channel)));
      told += 1;
      if (told * (kills + 1) < (due + 1) * tasks.length || due === kills) continue;
      due += 1;
      last = last.then(() => ground.fleet.kill(ground.signal));
      last.catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, tellInTurn));
  await last;
  const over = new AbortController();
  const late = async (): Promise<never> => {
    await sleep(FAR_MS, undefined, { signal: over.signal });
    throw new Error(`events were left waiting: ${await ground.left()}`);
  };
  try {
    await Promise.race([ground.drained(), late()]);
  } finally {
    over.abort();
  }
  await ground.fleet.whole(ground.signal);
  await ground.fleet.stop();
}

async function judge({ backend }: Ground, tasks: readonly Task[]): Promise<ChannelsVerdict> {
  const completions = await backend.completions();
  const effects = await backend.effects();
  const of = (rows: readonly { readonly key: string }[], { keys }: Task): number =>
    rows.filter(({ key }) => keys.has(key)).length;
  const named = (wrong: (task: Task) => boolean): string[] => tasks.filter(wrong).map(({ name }) => name);
  return {
    lost: named((task) => of(completions, task) === 0),
    completedTwice: named((task) => of(completions, task) > 1),
    effectsWrong: backend.hasTransactions ? named((task) => of(effects, task) !== 1) : [],
  };
}

/** The end of each task told by several channels at once, while processes are killed; then the ledgers are read. */
export function run(options: RunOptions): Promise<Result> {
  const began = performance.now();
  const roles = ROLES[options.mode];
  return onGround({ ...options, ...TIMES, roles, observes: true }, async (ground) => {
    const tasks = tasksOf(options, ground.backend.hasTransactions, ground.random);
    await play(ground, tasks, options);
    const verdict = await judge(ground, tasks);
    const runs = ground.ledger.read().filter(({ what }) => what === 'run').length;
    return {
      verdict,
      unexpected: ground.seller.unexpected,
      figures: {
        store: options.kind,
        mode: options.mode,
        seed: options.seed,
        tasks: tasks.length,
        told: tasks.reduce((sum, { ways }) => sum + ways.length, 0),
        runs,
        kills: ground.fleet.kills(),
        deaths: ground.ledger.read().filter(({ what }) => what === 'die').length,
        lost: verdict.lost.length,
        completedTwice: verdict.completedTwice.length,
        effectsWrong: verdict.effectsWrong.length,
        seconds: Math.round((performance.now() - began) / 1000),
      },
    };
  });
}
