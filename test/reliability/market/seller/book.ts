import { randomUUID } from 'node:crypto';
import type { AgentPolicy, SellerLine, Task } from '../wire.ts';
import type { SellerLog } from './log.ts';
import { type Asked, taskOf, type Treatment } from './plan.ts';

/** What a task's result, or its way there, says. */
export interface Told {
  readonly status: string;
  readonly at: number;
  readonly result: object;
}

/** The seller's own list of what it was asked, and has taken on; written down before it is said. */
export interface Book {
  /** Counts a request. @returns how many of its key have come so far, this one with them. */
  readonly count: (agent: string, asked: Asked) => number;
  /** The task of a request: the one that its key has already, else a new one. */
  readonly take: (policy: AgentPolicy, asked: Asked, treatment: Treatment) => Task;
  readonly named: (agent: string, taskId: string) => Task | undefined;
  readonly tasks: () => Iterable<Task>;
}

const keyOf = (agent: string, requestKey: string): string => `${agent} ${requestKey}`;

/** @param onTask every new one. */
export function bookFrom({ before, write }: SellerLog, onTask: (task: Task) => void): Book {
  const counts = new Map<string, number>();
  const byKey = new Map<string, Task>();
  const tasks = new Map<string, Task>();
  const keep = (task: Task): void => {
    byKey.set(keyOf(task.agent, task.requestKey), task);
    tasks.set(task.taskId, task);
  };
  const note = (line: SellerLine): void => {
    if (line.what === 'task') keep(line.task);
    if (line.what !== 'request') return;
    const key = keyOf(line.agent, line.requestKey);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  for (const line of before) note(line);
  return {
    count: (agent, { name, requestKey }) => {
      const line = { what: 'request', agent, name, requestKey } as const;
      write(line);
      note({ at: Date.now(), ...line });
      return counts.get(keyOf(agent, requestKey)) ?? 0;
    },
    take: (policy, asked, treatment) => {
      const known = policy.forgets ? undefined : byKey.get(keyOf(policy.name, asked.requestKey));
      if (known) return known;
      const taskId = `task-${randomUUID()}`;
      const task = taskOf(policy, asked, treatment, {
        taskId,
        resultId: `buy-${randomUUID()}`,
        now: Date.now(),
      });
      write({ what: 'task', task });
      keep(task);
      onTask(task);
      return task;
    },
    named: (agent, taskId) => {
      const task = tasks.get(taskId);
      return task?.agent === agent ? task : undefined;
    },
    tasks: () => tasks.values(),
  };
}

/** What a step says. @param note what one channel may say otherwise than another. */
export function toldAt({ steps, resultId }: Task, step: number, note: string): Told {
  const { status = '', at = 0 } = steps[step] ?? {};
  if (step < steps.length - 1) return { status, at, result: { step, percentage: 10 * step } };
  const errors =
    status === 'failed' ? { errors: [{ code: 'PRODUCT_UNAVAILABLE', message: 'It is sold.' }] } : {};
  return { status, at, result: { step, media_buy_id: resultId, packages: [], note, ...errors } };
}

/** Where a task is now. `step` is absent before its first one. */
export function stepNow({ steps }: Task, now: number): number | undefined {
  const step = steps.findLastIndex(({ at }) => at <= now);
  return step < 0 ? undefined : step;
}
