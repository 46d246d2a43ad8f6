// Sends one script, or a Redis pipeline of scripts with a WAIT. Scripts that the server refused temporarily are
// repeated (admission.md §9.5).
// Called by pipeline.ts. Other files limit the time of their calls with `withTimeout`.
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
  /** The time limit of a call, including retries and waits. Ms. */
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  /**
   * Returns the number of replicas that must have a write before its call is answered; 0: none, and no WAIT is sent.
   */
  readonly replicas: () => number;
  /**
   * Returns the number of replicas that must have a write, for a primary that has `attached` replicas.
   *
   * @throws Fault `not_durable` if that number may not be enough.
   */
  readonly needed?: (attached: number) => number;
}

/** A call that has been accepted, and has no answer yet. */
export interface RedisJob {
  readonly call: Call;
  readonly deadline: number;
  /** Returns true if the call has its answer, or if its time limit has passed. */
  readonly isSettled: () => boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes calls wait for the connection. They do not wait in the client's queue, which would send calls that were given
 * up.
 */
export interface Gate {
  /**
   * Resolves when there is a connection; undefined if there already is one.
   *
   * @throws Fault `store_unavailable` if there is none at `deadline` (`performance.now()`).
   */
  readonly ready: (deadline: number) => Promise<void> | undefined;
}

/** A connection, and the gate at which calls wait for it. */
export interface Wire {
  readonly connection: RedisConnection;
  readonly gate: Gate;
}

/** The pause before scripts that the server refused temporarily are sent again, ms. */
const AGAIN_MS = 50;

const argsOf = ({ keys, args }: Call): [number, ...Arg[]] => [keys.length, ...keys, ...args];

/**
 * Runs a script by its hash. If the server no longer has the script (restart, SCRIPT FLUSH, failover), sends its
 * source.
 */
async function evaluate(connection: RedisConnection, { call, isSettled }: RedisJob): Promise<unknown> {
  try {
    return await connection.evalshaBuffer(call.script.sha, ...argsOf(call));
  } catch (error) {
    if (!isNoScript(error) || isSettled()) throw error;
    return connection.evalBuffer(call.script.source, ...argsOf(call));
  }
}

/**
 * Sends one script, and repeats it once after a temporary refusal. Nothing is sent for a call that was given up,
 * because its caller would not learn of an effect, e.g. a lease.
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
 * Sends the scripts, followed by an INFO about the primary's replicas and a WAIT. Scripts that the server refused
 * temporarily are sent once more, with another WAIT.
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
    // A slot has moved to another node. The client follows the reply MOVED only for a single command, so one script is
    // sent alone. From then on the client sends pipelines to the new node, too.
    const moved = again.find(({ error }) => isMoved(error));
    if (moved) await evaluate(wire.connection, moved.job).catch(() => undefined);
    else if (left.length > 0 && !bySource) await sleep(AGAIN_MS);
  }
}

/**
 * True if a script is sent again. If the server does not have the script, after tries 1 and 2; after a temporary
 * refusal, only after try 1.
 */
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

/**
 * Answers the calls whose scripts ran, if enough replicas have their writes. Otherwise rejects them.
 *
 * @returns the calls whose script or whose WAIT failed, with the errors.
 * @throws Fault `not_durable` if the attached replicas may not be enough.
 */
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

/**
 * Rejects if `work` takes longer than `timeoutMs`. On a connection that is dead without an error, `work` would never
 * end, and would delay all later calls.
 */
export const withTimeout = <T>(work: Promise<T>, timeoutMs: number): Promise<T> =>
  orLate(work, timeoutMs, () => new Fault('store_unavailable', 'Redis: no answer.'));
