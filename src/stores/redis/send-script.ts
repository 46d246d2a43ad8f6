import { orLate, sleep } from '../../shared/time-limits.ts';
import { Fault } from '../../shared/errors.ts';
import { attachedIn } from './barrier.ts';
import {
  type Arg,
  type RedisConnection,
  type Pipeline,
  isMoved,
  isNoScript,
  isPassing,
} from './redis-client.ts';
import type { Script } from './scripts.ts';

/** One run of a script. */
export interface Call {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly Arg[];
}

export interface LaneOptions {
  /** From the call to its answer, tries and waits included. Ms. */
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  /** Replicas that must have what an answer rests on; 0: none, and no WAIT is sent. */
  readonly replicas: () => number;
  /** The same, of a primary that has so many attached now. @throws Fault `not_durable` where that may not do. */
  readonly needed?: (attached: number) => number;
}

/** A call on its way. */
export interface RedisJob {
  readonly call: Call;
  readonly deadline: number;
  /** Also when its time ran out under it. */
  readonly isSettled: () => boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls wait here, not in the client's queue: one that was given up is not sent later. */
export interface Gate {
  /** Resolves when there is a connection; undefined where there is one. @throws Fault `store_unavailable` at `deadline` (`performance.now()`). */
  readonly ready: (deadline: number) => Promise<void> | undefined;
}

/** A connection, and where to wait for it. */
export interface Wire {
  readonly connection: RedisConnection;
  readonly gate: Gate;
}

/** A refusal that passes is tried again after this, ms. */
const AGAIN_MS = 50;

const argsOf = ({ keys, args }: Call): [number, ...Arg[]] => [keys.length, ...keys, ...args];

/** By name; by source where the server has forgotten it (restart, SCRIPT FLUSH, failover). */
async function evaluate(connection: RedisConnection, { call, isSettled }: RedisJob): Promise<unknown> {
  try {
    return await connection.evalshaBuffer(call.script.sha, ...argsOf(call));
  } catch (error) {
    if (!isNoScript(error) || isSettled()) throw error;
    return connection.evalBuffer(call.script.source, ...argsOf(call));
  }
}

/**
 * Sends one script; what passes is tried once more. Nothing is sent for a call that was given up: what it would do,
 * such as take a lease, nobody would know of.
 */
export async function sendOne({ connection, gate }: Wire, job: RedisJob): Promise<void> {
  for (let tries = 1; !job.isSettled(); tries += 1) {
    try {
      const connecting = gate.ready(job.deadline);
      if (connecting) await connecting;
      if (job.isSettled()) return;
      job.resolve(await evaluate(connection, job));
    } catch (error) {
      if (tries === 2 || !isPassing(error)) job.reject(error);
      else await sleep(AGAIN_MS);
    }
  }
}

type Replies = readonly (readonly [Error | null, unknown?])[];

/**
 * Sends the scripts, and behind them a question for the primary's replicas and a WAIT; those that the server refused for
 * now once more, with a WAIT of their own.
 */
export async function sendBatch(wire: Wire, batch: readonly RedisJob[], options: LaneOptions): Promise<void> {
  let left = batch;
  let bySource = false;
  for (let tries = 1; left.length > 0; tries += 1) {
    const failed = await sendPipeline(wire, left, options, bySource);
    const again = failed.filter(({ job, error }) => !job.isSettled() && retried(tries, error));
    for (const { job, error } of failed) if (!retried(tries, error)) job.reject(error);
    left = again.map(({ job }) => job);
    bySource = again.some(({ error }) => isNoScript(error));
    // A single command follows the slot to its node, and so does the client from then on.
    const moved = again.find(({ error }) => isMoved(error));
    if (moved) await evaluate(wire.connection, moved.job).catch(() => undefined);
    else if (left.length > 0 && !bySource) await sleep(AGAIN_MS);
  }
}

/** Once for a script that is not there, and once for what passes. */
function retried(tries: number, error: unknown): boolean {
  return isNoScript(error) ? tries <= 2 : tries === 1 && isPassing(error);
}

interface Failed {
  readonly job: RedisJob;
  readonly error: unknown;
}

async function sendPipeline(
  { connection, gate }: Wire,
  jobs: readonly RedisJob[],
  options: LaneOptions,
  bySource: boolean,
): Promise<Failed[]> {
  const { replicas, needed = replicas } = options;
  let batch = jobs;
  try {
    await gate.ready(Math.max(...jobs.map(({ deadline }) => deadline)));
    batch = jobs.filter((job) => !job.isSettled());
    if (batch.length === 0) return [];
    const pipeline = connection.pipeline();
    for (const { call } of batch) add(pipeline, call, bySource);
    pipeline.info('replication');
    pipeline.wait(replicas(), options.waitTimeoutMs);
    const replies: Replies = (await withTimeout(pipeline.exec(), options.timeoutMs)) ?? [];
    return settle(batch, replies, needed);
  } catch (error) {
    return batch.map((job) => ({ job, error }));
  }
}

function add(pipeline: Pipeline, call: Call, bySource: boolean): void {
  if (bySource) pipeline.evalBuffer(call.script.source, ...argsOf(call));
  else pipeline.evalshaBuffer(call.script.sha, ...argsOf(call));
}

/** Answers those whose script ran, by how many replicas have it; the others are left. @throws Fault `not_durable` */
function settle(
  batch: readonly RedisJob[],
  replies: Replies,
  needed: (attached: number) => number,
): Failed[] {
  const [infoError, info] = replies[batch.length] ?? [new Error('no reply')];
  const [noCount, count] = replies[batch.length + 1] ?? [new Error('no reply')];
  const waitError = infoError ?? noCount;
  const replicas = waitError ? 0 : needed(attachedIn(String(info)));
  const failed: Failed[] = [];
  for (const [index, job] of batch.entries()) {
    const [error, reply] = replies[index] ?? [new Error('no reply')];
    if (error ?? waitError) failed.push({ job, error: error ?? waitError });
    else if (Number(count) >= replicas) job.resolve(reply);
    else job.reject(tooFew(Number(count), replicas));
  }
  return failed;
}

function tooFew(count: number, replicas: number): Fault {
  return new Fault('not_durable', `Redis: ${count} replicas have confirmed, waitReplicas is ${replicas}.`);
}

/** A pipeline on a connection that died without a word must not hold up those behind it without end. */
export const withTimeout = <T>(work: Promise<T>, timeoutMs: number): Promise<T> =>
  orLate(work, timeoutMs, () => new Fault('store_unavailable', 'Redis: no answer.'));
