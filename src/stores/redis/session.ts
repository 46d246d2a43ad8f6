import { orLate } from '../../time-limits.ts';
import { ConfigError, Fault } from '../../errors.ts';
import type { StoreIdentity } from '../contract.ts';
import type { Call } from './send.ts';
import { laneOf } from './lane.ts';
import {
  type RedisConnection,
  type RedisClient,
  duplicateOf,
  primaries,
  asFault,
  isForbidden,
} from './client.ts';
import { checkSchema, identify, raiseSchema, schemaWatchOf } from './schema.ts';
import type { Keys, Scripts } from './scripts.ts';
import { keyidsOf, nonceCounts } from './nonce-counts.ts';
import { registryOf } from './registry.ts';
import { silentSweeper } from './senders.ts';
import { withTimeout } from './send.ts';
import { checkServers, durabilityOf, replicasOf } from './settings.ts';
import { takeOver, takeOverAll } from './takeover.ts';
import { watchOf } from './watch.ts';
import type { RunScript, Session } from './registry.ts';
import { isError } from '../../realms.ts';

export interface SessionOptions {
  readonly client: RedisClient;
  readonly keys: Keys;
  readonly scripts: Scripts;
  readonly clockOffsetMs: () => number;
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  /** undefined: 1 from the time on that every primary is seen to have a replica. */
  readonly waitReplicas: number | undefined;
  /** Told where the keys of an open store are found to be another store's. What it throws, calls end with. */
  readonly identityChanged: (identity: StoreIdentity) => void;
}

/** @throws ConfigError where the servers cannot keep the promise; Fault `store_unavailable` where none answers. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const connection = duplicateOf(options.client, options.timeoutMs);
  let connectionError: unknown;
  // What is wrong with a connection is told by an event, which nobody else listens to.
  connection.on('error', (error) => {
    connectionError = error;
  });
  try {
    await connected(connection, options.timeoutMs);
    await checkServers(connection);
    await checkSchema(connection, options.keys.version);
    const identity = await identify(connection, options.keys);
    await raiseSchema(connection, options.keys.version);
    await loadScripts(connection, options.scripts);
    const barrier = barrierOf(connection, options.waitReplicas);
    await barrier.look();
    const onDisk = (await durabilityOf(connection, 0)) === 'disk';
    const session = sessionOf(connection, { ...options, onDisk, identity }, barrier);
    // The right to run scripts on the store's keys shows here too: only when one is run.
    await takeOverAll(session);
    return session;
  } catch (error) {
    connection.disconnect();
    throw refusal(error, connectionError);
  }
}

function refusal(error: unknown, connectionError: unknown): ConfigError | Fault {
  if (error instanceof ConfigError) return error;
  const forbidden = [error, error instanceof Fault ? error.cause : undefined, connectionError].find(
    isForbidden,
  );
  if (forbidden === undefined) return asFault(connectionError ?? error);
  const text = isError(forbidden) ? forbidden.message : 'the user is refused';
  return new ConfigError(
    `redisStore: ${text}. Check the client's username and password, and allow it its keys, INFO, SCRIPT, EVAL, EVALSHA, TIME, WAIT and the string, set, hash and sorted-set commands.`,
    { cause: forbidden },
  );
}

async function connected(connection: RedisConnection, timeoutMs: number): Promise<void> {
  const late = (): Fault => new Fault('store_unavailable', `Redis: no connection within ${timeoutMs} ms.`);
  await orLate(connection.connect(), timeoutMs, late);
}

/** So that the first delivery takes one round trip as all others. A server that forgets them is told again. */
async function loadScripts(connection: RedisConnection, scripts: Scripts): Promise<void> {
  for (const node of primaries(connection)) {
    await Promise.all(Object.values(scripts).map(({ source }) => node.call('SCRIPT', 'LOAD', source)));
  }
}

interface Barrier {
  readonly replicas: () => number;
  /** Looks whether replicas have come; those that went are waited for all the same. */
  readonly look: () => Promise<void>;
}

function barrierOf(connection: RedisConnection, asked: number | undefined): Barrier {
  let replicas = asked ?? 0;
  return {
    replicas: () => replicas,
    look: async () => {
      if (asked === undefined && replicas === 0 && (await replicasOf(connection)) > 0) replicas = 1;
    },
  };
}

function sessionOf(
  connection: RedisConnection,
  options: SessionOptions & { readonly onDisk: boolean; readonly identity: StoreIdentity },
  barrier: Barrier,
): Session {
  const { keys, scripts } = options;
  let { identity } = options;
  const identityChanged = (found: StoreIdentity): void => {
    options.identityChanged(found);
    identity = { ...found, isNew: false };
  };
  const schema = schemaWatchOf(connection, { ...options, known: () => identity.id, identityChanged });
  const watches = { schema, kept: watchOf(connection, options) };
  const lane = laneOf(connection, watches, { ...options, replicas: barrier.replicas });
  const counts = nonceCounts();
  const offsetMs = (): number => Math.round(options.clockOffsetMs());
  const sweepNext = silentSweeper(() => session);
  const also = async (): Promise<void> => {
    await barrier.look();
    await sweepNext();
  };
  const taken = (sender: string): Promise<void> => takeOver(session, sender);
  const session: Session = {
    run: runOf(lane.run, options, offsetMs),
    read: runOf(lane.read, options, offsetMs),
    registry: registryOf({ lane, scripts, keys, counts, also, takeOver: taken }),
    identity: () => {
      const before = identity;
      identity = { ...identity, isNew: false };
      return before;
    },
    counts,
    keyids: keyidsOf(),
    offsetMs,
    durability: async () => {
      await checkSchema(connection, keys.version);
      return durabilityOf(connection, barrier.replicas());
    },
    clock: async () => (await timeOf(connection, options)) + offsetMs(),
    close: async () => {
      await lane.idle();
      connection.disconnect();
    },
  };
  return session;
}

function runOf(
  send: (call: Call) => Promise<unknown>,
  { scripts, keys }: SessionOptions,
  offsetMs: () => number,
): RunScript {
  return (script, sender, asked, binaries = []) => {
    const args = [JSON.stringify({ offset: offsetMs(), ...asked }), ...binaries];
    return send({ script: scripts[script], keys: keys.of(sender), args });
  };
}

async function timeOf(connection: RedisConnection, { timeoutMs }: SessionOptions): Promise<number> {
  const [node = connection] = primaries(connection);
  const [seconds, micros] = (await withTimeout(node.call('TIME'), timeoutMs)) as readonly unknown[];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
