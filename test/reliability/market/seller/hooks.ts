import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PlannedHook, Task, Transport } from '../wire.ts';
import { toldAt } from './book.ts';
import { type SellerKey, signedHeaders } from './keys.ts';
import type { SellerLog } from './log.ts';

/** Sends what its tasks have to tell. */
export interface Hooks {
  /** Every webhook of a task that is not over yet, each at its time. */
  readonly plan: (task: Task) => void;
  /** Webhooks that are not over. */
  readonly pending: () => number;
}

const NO_ANSWER_MS = 3_000;
const AGAIN_MS = [20, 60, 150, 300] as const;

/** One connection each: a receiver that is killed takes no other delivery with it. */
const agent = new Agent({ keepAlive: false });

/** @returns the status; undefined where nothing was answered. */
export function post(
  url: string,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const all = { ...headers, 'Content-Length': String(body.byteLength) };
    const sent = request(url, { agent, method: 'POST', headers: all });
    const timer = setTimeout(() => sent.destroy(new Error('no answer in time')), NO_ANSWER_MS);
    const end = (status?: number): void => {
      clearTimeout(timer);
      resolve(status);
    };
    sent.once('response', (response) => {
      response.on('error', () => undefined);
      response.once('close', () => end(response.statusCode));
      response.resume();
    });
    sent.on('error', () => end());
    sent.end(body);
  });
}

/** The envelope of the tool transport. */
function toolEnvelope(task: Task, { key, step, note }: PlannedHook): object {
  const { taskId, operationId, taskType, context } = task;
  const { status, at, result } = toldAt(task, step, note);
  return {
    idempotency_key: key,
    task_id: taskId,
    operation_id: operationId,
    task_type: taskType,
    domain: 'media-buy',
    status,
    timestamp: new Date(at).toISOString(),
    message: status,
    result,
    context,
  };
}

/** A task where it has ended, and an update of its status on the way. */
function agentEnvelope(task: Task, { key, step, note }: PlannedHook): object {
  const { taskId, operationId, taskType, context, steps } = task;
  const { status: state, at, result } = toldAt(task, step, note);
  const timestamp = new Date(at).toISOString();
  const parts = [{ kind: 'data', data: result }];
  const common = {
    contextId: `context-of-${taskId}`,
    metadata: { idempotency_key: key, operation_id: operationId, task_type: taskType, context },
  };
  if (step === steps.length - 1) {
    const artifacts = [{ artifactId: 'result', parts }];
    return { kind: 'task', id: taskId, ...common, status: { state, timestamp }, artifacts };
  }
  const message = { kind: 'message', messageId: key, role: 'agent', parts };
  return { kind: 'status-update', taskId, ...common, status: { state, timestamp, message }, final: false };
}

/** @param keyOf, transportOf of an agent. */
export function hooksWith(
  { before, write }: SellerLog,
  keyOf: (agent: string) => SellerKey,
  transportOf: (agent: string) => Transport,
): Hooks {
  const over = new Set(before.flatMap((line) => (line.what === 'hook-over' ? line.key : [])));
  let pending = 0;

  /** Again and again until the answer is final. */
  async function deliver(task: Task, hook: PlannedHook): Promise<void> {
    const { taskId, url = '' } = task;
    const { key } = hook;
    const envelope = transportOf(task.agent) === 'tool' ? toolEnvelope : agentEnvelope;
    const body = Buffer.from(JSON.stringify(envelope(task, hook)));
    const { status } = toldAt(task, hook.step, '');
    for (let attempt = 1; ; attempt += 1) {
      const answered = await post(url, body, signedHeaders(url, body, keyOf(task.agent)));
      write({ what: 'hook', taskId, key, status, ...(answered !== undefined && { answered }) });
      const isFinal = answered !== undefined && answered < 500 && answered !== 429;
      if (!isFinal && attempt < hook.attempts) {
        await sleep(AGAIN_MS[Math.min(attempt, AGAIN_MS.length) - 1]);
        continue;
      }
      const how = !isFinal ? 'given-up' : answered < 300 ? 'taken' : 'refused';
      write({ what: 'hook-over', taskId, key, how });
      return;
    }
  }

  async function send(task: Task, hook: PlannedHook): Promise<void> {
    await sleep(Math.max(0, hook.at - Date.now()));
    await Promise.all(Array.from({ length: hook.copies }, () => deliver(task, hook)));
    pending -= 1;
  }

  return {
    plan: (task) => {
      for (const hook of task.hooks) {
        if (over.has(hook.key)) continue;
        pending += 1;
        void send(task, hook);
      }
    },
    pending: () => pending,
  };
}
