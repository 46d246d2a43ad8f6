import { ConfigError, Fault } from '../../errors.ts';
import type { Durability } from '../contract.ts';
import type { Connection, RedisClient } from './client.ts';
import { duplicateOf, primaries } from './client.ts';
import { asFault, isForbidden } from './faults.ts';
import type { Keys } from './keys.ts';
import type { Lane } from './lane.ts';
import { laneOf } from './lane.ts';
import type { NonceCounts } from './nonce-counts.ts';
import { nonceCounts } from './nonce-counts.ts';
import type { Registry } from './registry.ts';
import { registryOf } from './registry.ts';
import type { Requests } from './requests.ts';
import { requestsOf } from './requests.ts';
import { checkSchema, schemaWatchOf } from './schema.ts';
import type { Scripts } from './scripts.ts';
import { withTimeout } from './send.ts';
import { checkServers, durabilityOf, replicasOf } from './settings.ts';
import { watchOf } from './watch.ts';

/** An open connection and what is known of the servers behind it. */
export interface Session extends Requests {
  readonly registry: Registry;
  readonly counts: NonceCounts;
  /** Random per call. */
  readonly newId: () => string;
  /** @throws ConfigError where a newer package has changed the keys meanwhile. */
  durability(): Promise<Durability | 'unknown'>;
  /** Of a primary: theirs are one clock, or leases would not hold over a failover. Unix ms. */
  clock(): Promise<number>;
  /** Waits for what runs, then disconnects. */
  close(): Promise<void>;
}

/** Runs something on the open session; a close waits for it. @throws Fault `store_unavailable` where there is none. */
export type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

export interface SessionOptions {
  readonly client: RedisClient;
  readonly keys: Keys;
  readonly scripts: Scripts;
  readonly clockOffsetMs: () => number;
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  /** undefined: 1 from the time on that every primary is seen to have a replica. */
  readonly waitReplicas: number | undefined;
}

/** @throws ConfigError where the servers cannot keep the promise; Fault `store_unavailable` where none answers. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const connection = duplicateOf(options.client, options.timeoutMs);
  let said: unknown;
  // What is wrong with a connection is told by an event, which nobody else listens to.
  connection.on('error', (error) => {
    said = error;
  });
  try {
    await connected(connection, options.timeoutMs);
    await checkServers(connection);
    await checkSchema(connection, options.keys.version);
    await loadScripts(connection, options.scripts);
    const barrier = barrierOf(connection, options.waitReplicas);
    await barrier.look();
    const onDisk = (await durabilityOf(connection, 0)) === 'disk';
    const session = sessionOf(connection, { ...options, onDisk }, barrier);
    // The right to run scripts on the store's keys shows only when one is run.
    await session.registry.senders();
    return session;
  } catch (error) {
    connection.disconnect();
    throw refusal(error, said);
  }
}

function refusal(error: unknown, said: unknown): ConfigError | Fault {
  if (error instanceof ConfigError) return error;
  const forbidden = [error, error instanceof Fault ? error.cause : undefined, said].find(isForbidden);
  if (forbidden === undefined) return asFault(said ?? error);
  const text = forbidden instanceof Error ? forbidden.message : 'the user is refused';
  return new ConfigError(
    `redisStore: ${text}. Check the client's username and password, and allow it its keys, INFO, SCRIPT, EVAL, EVALSHA, TIME, WAIT and the string, set, hash and sorted-set commands.`,
    { cause: forbidden },
  );
}

async function connected(connection: Connection, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const fault = new Fault('store_unavailable', `Redis: no connection within ${timeoutMs} ms.`);
    timer = setTimeout(() => reject(fault), timeoutMs);
  });
  try {
    await Promise.race([connection.connect(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** So that the first delivery takes one round trip as all others. A server that forgets them is told again. */
async function loadScripts(connection: Connection, scripts: Scripts): Promise<void> {
  for (const node of primaries(connection)) {
    await Promise.all(Object.values(scripts).map(({ source }) => node.call('SCRIPT', 'LOAD', source)));
  }
}

interface Barrier {
  readonly replicas: () => number;
  /** Looks whether replicas have come; those that went are waited for all the same. */
  readonly look: () => Promise<void>;
}

function barrierOf(connection: Connection, asked: number | undefined): Barrier {
  let replicas = asked ?? 0;
  return {
    replicas: () => replicas,
    look: async () => {
      if (asked === undefined && replicas === 0 && (await replicasOf(connection)) > 0) replicas = 1;
    },
  };
}

function sessionOf(
  connection: Connection,
  options: SessionOptions & { readonly onDisk: boolean },
  barrier: Barrier,
): Session {
  const { keys, scripts } = options;
  const schema = schemaWatchOf(connection, keys.version, options);
  const watches = { schema, kept: watchOf(connection, options) };
  const lane: Lane = laneOf(connection, watches, { ...options, replicas: barrier.replicas });
  const counts = nonceCounts();
  const requests = requestsOf(lane, { ...options, counts });
  return {
    ...requests,
    registry: registryOf({ lane, scripts, keys, counts, also: barrier.look }),
    counts,
    newId: () => globalThis.crypto.randomUUID(),
    durability: () =>
      asked(async () => {
        await checkSchema(connection, keys.version);
        return durabilityOf(connection, barrier.replicas());
      }),
    clock: () => asked(async () => (await timeOf(connection, options)) + options.clockOffsetMs()),
    close: async () => {
      await lane.idle();
      connection.disconnect();
    },
  };
}

async function asked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ConfigError ? error : asFault(error);
  }
}

async function timeOf(connection: Connection, { timeoutMs }: SessionOptions): Promise<number> {
  const [node = connection] = primaries(connection);
  const [seconds, micros] = (await withTimeout(node.call('TIME'), timeoutMs)) as readonly unknown[];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
