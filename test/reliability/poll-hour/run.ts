import { createSessions, CONTEXT, type WithContext } from '../../../src/for-tests.ts';
import { pollerLoop, type PollerLoop } from '../../../src/poll/for-tests.ts';
import type { CallSeller } from '../../../src/registrations/index.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from '../../../src/registrations/for-tests.ts';
import { type Process, world } from '../../poll/kit.ts';
import { hashes } from '../../registrations/kit.ts';
import { payloads } from '../../receiver/setup.ts';
import { randomOf } from '../processes/random.ts';

/*
 * An hour of many tasks and sellers, polled by three processes under a clock that stands still while anything can be done. The
 * seller's own log is what is judged.
 */

export interface Form {
  readonly tasks: number;
  readonly sellers: number;
  readonly seed: number;
  /** Ms: shorter than a question takes, another process asks meanwhile. */
  readonly leaseMs: number;
  /** How long they are polled. Ms. */
  readonly forMs: number;
}

const S = 1000;
const HOUR = 3600 * S;
const FAST = 30 * S;
const SLOW = 120 * S;
const PER_SELLER = 4;
/** A question takes up to so long. */
const TAKES_MS = 400;
/** The longest time that a poller sleeps between two looks. */
const LOOK_MS = 10 * S;

interface Asked {
  readonly from: number;
  until: number;
}

/** A task as its seller has it. */
interface Task {
  readonly id: string;
  readonly agentUrl: string;
  /** By a webhook, before a poll can see it; else polls alone. */
  readonly isTold: boolean;
  readonly endsAt: number;
  readonly asked: Asked[];
  /** When the buyer had its end safe. */
  safeAt?: number;
  handled: number;
}

/** What was not kept, each by its tasks or sellers. All empty: it was. */
export interface HourVerdict {
  readonly polledTwiceAtOnce: readonly string[];
  readonly overPerSeller: readonly string[];
  readonly polledAfterTheEnd: readonly string[];
  readonly tooOften: readonly string[];
  readonly tooSeldom: readonly string[];
  readonly notHandledOnce: readonly string[];
}

export interface Result {
  readonly verdict: HourVerdict;
  readonly figures: Readonly<Record<string, number>>;
}

/** Only the first agent URL can sign: it is the one that delivers webhooks, and is polled slowly. */
const agentUrlOf = (nth: number): string =>
  nth === 0 ? 'https://seller.example/mcp' : `https://seller-${nth}.example/mcp`;

export async function run({ tasks: count, sellers, seed, leaseMs, forMs }: Form): Promise<Result> {
  const random = randomOf(seed);
  const at = world(() => random.next());
  const { clock } = at;
  const tasks = new Map<string, Task>();
  const underWay = new Map<string, number>();
  const most = new Map<string, number>();

  const call: CallSeller = async (agentUrl, _operation, { task_id: id }) => {
    const task = tasks.get(id as string);
    if (!task) throw new Error('no such task');
    const asked: Asked = { from: clock.now(), until: Infinity };
    task.asked.push(asked);
    const now = (underWay.get(agentUrl) ?? 0) + 1;
    underWay.set(agentUrl, now);
    most.set(agentUrl, Math.max(now, most.get(agentUrl) ?? 0));
    await clock.sleep(1 + random.below(TAKES_MS));
    underWay.set(agentUrl, (underWay.get(agentUrl) ?? 1) - 1);
    asked.until = clock.now();
    if (asked.until < task.endsAt) return { task_id: id, status: 'working' };
    return { task_id: id, status: 'completed', result: { media_buy_id: id } };
  };

  const handler = async (event: {
    readonly kind: string;
    readonly taskId?: string;
    readonly status?: string;
  }) => {
    const task =
      event.kind === 'task' && event.status === 'completed' ? tasks.get(event.taskId ?? '') : undefined;
    if (!task) return;
    task.handled += 1;
    task.safeAt ??= clock.now();
  };
  const processes: Process[] = [];
  const loops: PollerLoop[] = [];
  for (let nth = 0; nth < 3; nth += 1) {
    const process = await at.process({}, { handler, worker: { concurrency: 64 } });
    processes.push(process);
    loops.push(loopOf(process, call, { leaseMs, clock, random: () => random.next() }));
  }
  const stopping = new AbortController();
  let polling: readonly Promise<void>[] = [];
  const [one] = processes;
  if (!one) throw new Error('there are three');

  try {
    for (let nth = 0; nth < count; nth += 1) {
      const agentUrl = agentUrlOf(nth % sellers);
      const id = `task-${nth}`;
      const ends = random.below(10) < 3;
      tasks.set(id, {
        id,
        agentUrl,
        isTold: ends && agentUrl === agentUrlOf(0),
        endsAt: ends ? random.below(forMs) : Infinity,
        asked: [],
        handled: 0,
      });
      const made = await one.registrations.create({ agentUrl, taskType: 'create_media_buy', arguments: {} });
      await made.settle({ status: 'submitted', task_id: id });
    }
    // What the first seller is heard of, before anybody polls.
    await one.deliver(payloads.tool('working', { task_id: 'task-0', timestamp: new Date().toISOString() }));
    const told = [...tasks.values()].filter(({ isTold }) => isTold);
    const telling = told.map(async ({ id, endsAt }) => {
      await clock.sleep(endsAt);
      await one.deliver(payloads.tool('completed', { task_id: id, result: { media_buy_id: id } }));
    });
    polling = loops.map((loop) => loop.run(stopping.signal));
    await clock.pass(forMs);
    await Promise.all(telling);
    const stats = loops.map((loop) => loop.stats());
    return judged([...tasks.values()], { most, stats, forMs });
  } finally {
    stopping.abort();
    await clock.pass(TAKES_MS);
    await Promise.all(polling);
    await at.end();
  }
}

interface LoopParts {
  readonly leaseMs: number;
  readonly clock: ReturnType<typeof world>['clock'];
  readonly random: () => number;
}

function loopOf(
  { receiver, registrations }: Process,
  call: CallSeller,
  { leaseMs, clock, random }: LoopParts,
): PollerLoop {
  const { [CONTEXT]: parts } = receiver as unknown as WithContext;
  const { [WATCHED_TASKS]: tasks } = registrations as unknown as WithWatchedTasks;
  return pollerLoop({
    parts,
    observe: receiver.observe,
    tasks,
    call,
    sessions: createSessions(() => () => undefined),
    transport: () => 'tool',
    query: undefined,
    pace: { fastMs: FAST, slowMs: SLOW, giveUpMs: 10 * HOUR, leaseMs, perSeller: PER_SELLER, random },
    silentMs: () => 24 * HOUR,
    concurrency: 64,
    callMs: HOUR,
    onPoll: () => {},
    hashes,
    clock: clock.now,
    sleep: clock.sleep,
  });
}

/** Up to the first poll, between polls, and from the last one until the task's end, or the end of the run. */
function waitsOf({ asked, safeAt }: Task, forMs: number): number[] {
  const times = [0, ...asked.map(({ from }) => from), Math.min(safeAt ?? Infinity, forMs)];
  return times.slice(1).map((time, nth) => time - (times[nth] ?? 0));
}

const gapsOf = ({ asked }: Task): number[] =>
  asked.flatMap(({ from }, nth) => {
    const before = asked[nth - 1];
    return before ? [from - before.from] : [];
  });

interface Seen {
  /** Questions to a seller at once. */
  readonly most: ReadonlyMap<string, number>;
  readonly stats: readonly ReturnType<PollerLoop['stats']>[];
  readonly forMs: number;
}

function judged(tasks: readonly Task[], { most, stats, forMs }: Seen): Result {
  const named = (isWrong: (task: Task) => boolean): string[] => tasks.filter(isWrong).map(({ id }) => id);
  const everyMs = ({ agentUrl }: Task): number => (agentUrl === agentUrlOf(0) ? SLOW : FAST);
  const polls = tasks.reduce((sum, { asked }) => sum + asked.length, 0);
  return {
    verdict: {
      polledTwiceAtOnce: named(({ asked }) =>
        asked.some(({ from }, nth) => asked.slice(0, nth).some(({ until }) => until > from)),
      ),
      overPerSeller: [...most].flatMap(([agentUrl, count]) => (count > PER_SELLER ? [agentUrl] : [])),
      polledAfterTheEnd: named(({ asked, safeAt = Infinity }) => asked.some(({ from }) => from > safeAt)),
      tooOften: named((task) => Math.min(Infinity, ...gapsOf(task)) < 0.9 * everyMs(task)),
      // What falls due is seen at the next look, and may have to wait for its seller's others.
      tooSeldom: named(
        (task) => Math.max(...waitsOf(task, forMs)) > 1.1 * everyMs(task) + LOOK_MS + 10 * TAKES_MS,
      ),
      // An end that came too late to be asked about may be left for the next hour.
      notHandledOnce: named(
        ({ endsAt, handled }) =>
          handled > 1 || (handled === 0 && endsAt < forMs - SLOW - LOOK_MS - 10 * TAKES_MS),
      ),
    },
    figures: {
      tasks: tasks.length,
      polls,
      ended: tasks.filter(({ handled }) => handled > 0).length,
      toldByWebhook: tasks.filter(({ isTold }) => isTold).length,
      changes: stats.reduce((sum, { polls: { changed, ended } }) => sum + changed + ended, 0),
    },
  };
}
