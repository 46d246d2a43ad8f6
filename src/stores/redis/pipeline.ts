// Sends Lua scripts to Redis: waits for a connection and for due checks, and limits the number of calls. Many calls
// share one WAIT, the command that waits for replicas (admission.md §9.5).
// Made by redis-session.ts; send-script.ts does the sending.
import { Fault } from '../../shared/errors.ts';
import { type RedisConnection, asFault } from './redis-client.ts';
import { sendBatch, sendOne, type Wire } from './send-script.ts';
import type { Watch } from './identity-check.ts';
import type { Gate } from './send-script.ts';
import type { Call } from './send-script.ts';
import type { LaneOptions } from './send-script.ts';
import type { RedisJob } from './send-script.ts';

function gateOf(connection: RedisConnection): Gate {
  const waiting = new Set<() => void>();
  connection.on('ready', () => {
    for (const pass of waiting) pass();
  });
  return {
    ready: (deadline) => {
      if (connection.status === 'ready') return undefined;
      // The client's status is `end` only if it gave up connecting, e.g. because a host name did not resolve. A new try
      // may succeed.
      if (connection.status === 'end') connection.connect().catch(() => undefined);
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          clearTimeout(timer);
          waiting.delete(pass);
        };
        const pass = (): void => {
          leave();
          resolve();
        };
        const timer = setTimeout(
          () => {
            leave();
            reject(new Fault('store_unavailable', 'Redis: not connected.'));
          },
          Math.max(0, deadline - performance.now()),
        );
        waiting.add(pass);
      });
    },
  };
}

/** Keeps `work` in `running` until it settles, so that a close can wait for it. */
function tracked<T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  running.add(work);
  const gone = (): void => void running.delete(work);
  work.then(gone, gone);
  return work;
}

/** Sends scripts to the servers. */
export interface Pipeline {
  /**
   * Runs a script, and resolves with its reply once enough replicas have its writes.
   *
   * @throws Fault `store_unavailable`, `not_durable`.
   */
  readonly run: (call: Call) => Promise<unknown>;
  /**
   * Runs a script on whose writes no answer depends. The call waits neither for replicas nor for a check of the
   * settings.
   */
  readonly read: (call: Call) => Promise<unknown>;
  /** Resolves when no call is running. */
  readonly idle: () => Promise<void>;
}

/** The checks that may be due before something is sent. */
interface Watches {
  readonly schema: Watch;
  /** The check of the servers' settings for durability. Calls by `read` skip it. */
  readonly kept: Watch;
}

/** The largest number of scripts that share one WAIT (the command that waits for replicas). */
const MOST = 128;

/**
 * The largest number of calls that may wait for a reply. Without a bound a slow server would fill this process's
 * memory.
 */
const WAITING_MOST = 10_000;

/**
 * Makes the pipeline. If no replica has to confirm writes, each call is sent immediately.
 *
 * If replicas have to, calls that come while a batch is running share the next batch. A batch is a Redis pipeline of
 * their scripts, followed by one INFO and one WAIT. All are sent over one connection, because WAIT waits only for the
 * writes of its own connection. A call takes one round trip, and a call that comes alone does not wait for others.
 */
export function pipelineOf(
  connection: RedisConnection,
  { schema, kept }: Watches,
  options: LaneOptions,
): Pipeline {
  const running = new Set<Promise<unknown>>();
  const gate = gateOf(connection);
  const both: Watch = { passed: (deadline) => after(schema.passed(deadline), () => kept.passed(deadline)) };
  const wire = { connection, gate: watchedGate(connection, gate, both) };
  const readingWire = { connection, gate: watchedGate(connection, gate, schema) };
  const batches = batchesOf(wire, options, running);
  let waiting = 0;
  const run = (call: Call, send: (job: RedisJob) => void): Promise<unknown> => {
    if (waiting >= WAITING_MOST) {
      return Promise.reject(new Fault('store_unavailable', 'Redis: too many calls are waiting for it.'));
    }
    waiting += 1;
    const answered = limited(call, options.timeoutMs, send, () => {
      waiting -= 1;
    });
    return tracked(running, answered);
  };
  const alone = (job: RedisJob): void => void sendOne(wire, job);
  const reading = (job: RedisJob): void => void sendOne(readingWire, job);
  return {
    run: (call) => run(call, options.replicas() > 0 ? batches : alone),
    read: (call) => run(call, reading),
    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

/**
 * Runs `second` once `first` has resolved. Often neither has anything to wait for. Then no promise is made, and
 * undefined is returned.
 */
function after(
  first: Promise<void> | undefined,
  second: () => Promise<void> | undefined,
): Promise<void> | undefined {
  return first ? first.then(() => second()) : second();
}

/** Makes a gate at which calls wait until the connection is ready and the due checks of `watch` have passed. */
function watchedGate(connection: RedisConnection, gate: Gate, watch: Watch): Gate {
  const waitUntilReady = async (first: Promise<void>, deadline: number): Promise<void> => {
    await first;
    // A command that the client gets while it is not connected is sent later, even if the caller has given up by then.
    // So nothing is passed to the client until the connection is ready.
    while (connection.status !== 'ready') {
      await gate.ready(deadline);
      await watch.passed(deadline);
    }
  };
  return {
    ready: (deadline) => {
      const first = after(gate.ready(deadline), () => watch.passed(deadline));
      return first && waitUntilReady(first, deadline);
    },
  };
}

/** Collects calls into batches. In a Cluster each sender has batches of its own: a pipeline goes to one node. */
function batchesOf(
  wire: Wire,
  options: LaneOptions,
  running: Set<Promise<unknown>>,
): (job: RedisJob) => void {
  const queues = new Map<string, RedisJob[]>();
  const drain = async (name: string, queue: RedisJob[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0, MOST).filter((job) => !job.isSettled());
      if (batch.length > 0) await sendBatch(wire, batch, options);
    }
    queues.delete(name);
  };
  return (job) => {
    const name = wire.connection.nodes ? (job.call.keys[0] ?? '') : '';
    const queue = queues.get(name);
    if (queue) queue.push(job);
    else {
      const created = [job];
      queues.set(name, created);
      void tracked(running, drain(name, created));
    }
  };
}

/** Rejects a call at its time limit, because its reply may be lost, or its connection may be dead without an error. */
function limited(
  call: Call,
  timeoutMs: number,
  send: (job: RedisJob) => void,
  ended: () => void,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let settled = false;
    const timer = setTimeout(() => {
      end();
      reject(new Fault('store_unavailable', `Redis: no answer within ${timeoutMs} ms.`));
    }, timeoutMs);
    const end = (): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      ended();
    };
    send({
      call,
      deadline: performance.now() + timeoutMs,
      isSettled: () => settled,
      resolve: (reply) => {
        end();
        resolve(reply);
      },
      reject: (error) => {
        end();
        reject(asFault(error));
      },
    });
  });
}
