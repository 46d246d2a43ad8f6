import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentPolicy, Task } from '../wire.ts';
import { type Book, stepNow, toldAt } from './book.ts';
import type { SellerLog } from './log.ts';
import { type Asked, treatmentOf } from './plan.ts';
import { diceOf } from './random.ts';

/** What a request is answered, whatever the transport. */
export type DeskReply =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'refusal'; readonly code: string; readonly isStructured: boolean }
  | { readonly kind: 'task'; readonly task: Task; readonly status: string; readonly isStructured: boolean }
  | {
      readonly kind: 'end';
      readonly task: Task;
      readonly status: string;
      readonly result: object;
      readonly isStructured: boolean;
    };

/** What a status query finds. `step` is absent before the task's first one. */
export interface Found {
  readonly task: Task;
  readonly status: string;
  readonly at: number;
  readonly result?: object;
  readonly isEnd: boolean;
}

/** Takes requests and status queries, and writes each down. */
export interface Desk {
  readonly ask: (policy: AgentPolicy, asked: Asked) => Promise<DeskReply>;
  /** @param response is seen to close: then nobody waits for the answer. */
  readonly poll: (
    policy: AgentPolicy,
    taskId: string,
    response: ServerResponse,
  ) => Promise<Found | undefined>;
}

export const FIRST_NOTE = 'as booked';

/** Longer than anybody waits. */
const NEVER_MS = 3_600_000;

/** @returns whether the connection was there all the time. */
async function waited(ms: number, response: ServerResponse): Promise<boolean> {
  const closed = new AbortController();
  const close = (): void => closed.abort();
  response.once('close', close);
  try {
    await sleep(ms, undefined, { signal: closed.signal });
    return true;
  } catch {
    return false;
  } finally {
    response.off('close', close);
  }
}

export function deskOf(seed: number, book: Book, { write }: SellerLog): Desk {
  let polls = 0;
  /** Status queries so far, by agent. */
  const queries = new Map<string, number>();

  const reply = async (policy: AgentPolicy, asked: Asked): Promise<DeskReply> => {
    const treatment = treatmentOf(seed, policy, asked);
    const { endsBefore, endsAfter, refusal, answerMs, isStructured } = treatment;
    const count = book.count(policy.name, asked);
    if (refusal !== undefined) return { kind: 'refusal', code: refusal, isStructured };
    if (count <= endsBefore) return { kind: 'nothing' };
    const task = book.take(policy, asked, treatment);
    if (count <= endsBefore + endsAfter) return { kind: 'nothing' };
    await sleep(answerMs);
    if (task.answers !== 'end') return { kind: 'task', task, status: task.answers, isStructured };
    const { status, result } = toldAt(task, task.steps.length - 1, FIRST_NOTE);
    return { kind: 'end', task, status, result, isStructured };
  };

  const find = (policy: AgentPolicy, taskId: string): Found | undefined => {
    const task = book.named(policy.name, taskId);
    if (!task) return undefined;
    const step = stepNow(task, Date.now());
    if (step === undefined) return { task, status: 'submitted', at: task.createdAt, isEnd: false };
    const isEnd = step === task.steps.length - 1;
    return { task, ...toldAt(task, step, FIRST_NOTE), isEnd };
  };

  return {
    ask: async (policy, asked) => {
      const said = await reply(policy, asked);
      write({
        what: 'answer',
        requestKey: asked.requestKey,
        said: said.kind === 'task' ? (said.status as 'submitted' | 'working') : said.kind,
      });
      return said;
    },
    poll: async (policy, taskId, response) => {
      polls += 1;
      const id = `${process.pid}-${polls}`;
      write({ what: 'poll', id, agent: policy.name, taskId });
      const found = find(policy, taskId);
      const dice = diceOf(`${seed} poll ${polls}`);
      const { name, pollMs = 1, hangs = 0, holds = 0 } = policy;
      const before = queries.get(name) ?? 0;
      queries.set(name, before + 1);
      const ms = before < holds || dice.percent(hangs) ? NEVER_MS : 1 + dice.below(pollMs);
      const isAnswered = await waited(ms, response);
      if (isAnswered) write({ what: 'polled', id, taskId, ...(found && { status: found.status }) });
      else write({ what: 'cut', id, taskId });
      return found;
    },
  };
}
