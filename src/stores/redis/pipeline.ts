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
      // Only a client that gave up for good, as on a name that did not resolve, is at its end; it may begin again.
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

/** Keeps `work` among what runs until it settles, so that a close can wait for it. */
function tracked<T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  running.add(work);
  const gone = (): void => void running.delete(work);
  work.then(gone, gone);
  return work;
}

/** The way to the server. */
export interface Pipeline {
  /** Answers once as many replicas have it as are asked for. @throws Fault `store_unavailable`, `not_durable`. */
  readonly run: (call: Call) => Promise<unknown>;
  /** For what reads only and decides nothing: waits for no replica. */
  readonly read: (call: Call) => Promise<unknown>;
  /** Resolves when nothing is under way. */
  readonly idle: () => Promise<void>;
}

/** What is looked at again before something is sent. */
interface Watches {
  readonly schema: Watch;
  /** Settings of the servers: not for what only reads. */
  readonly kept: Watch;
}

/** Scripts before one WAIT at most. */
const MOST = 128;

/** Calls that wait at most; beyond, a server that is slow would fill this process's memory. */
const WAITING_MOST = 10_000;

/**
 * Without replicas each call goes out at once. With them, calls that come while a batch is under way share the next
 * one: a pipeline of their scripts, and behind them one INFO and one WAIT, on one connection, which is what WAIT waits for. One
 * round trip a call, and a call that comes alone does not wait.
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
    if (waiting > WAITING_MOST) {
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

/** Mostly there is nothing to wait for. */
function after(
  first: Promise<void> | undefined,
  second: () => Promise<void> | undefined,
): Promise<void> | undefined {
  return first ? first.then(() => second()) : second();
}

/** The gate, and behind it the watch. */
function watchedGate(connection: RedisConnection, gate: Gate, watch: Watch): Gate {
  const waitUntilReady = async (first: Promise<void>, deadline: number): Promise<void> => {
    await first;
    // A command that is given to the client while it is not connected is sent later, whether it was given up or not.
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

/** In a Cluster each sender has batches of its own: a pipeline goes to one node. */
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

/** A call that ends with its time: its reply may be lost, or the connection dead without knowing. */
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
