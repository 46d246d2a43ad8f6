// Opens the store's connection, checks the servers, and makes the session that runs scripts (admission.md §7.2,
// §9.5).
// Called by redis-backend.ts.
import { orLate } from '../../shared/time-limits.ts';
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { Durability, StoreIdentity } from '../store.ts';
import type { Call } from './send-script.ts';
import type { Barrier } from './barrier.ts';
import { pipelineOf } from './pipeline.ts';
import {
  type RedisConnection,
  type RedisClient,
  duplicateOf,
  primaries,
  asFault,
  isCluster,
  isForbidden,
} from './redis-client.ts';
import { checkSchema, identify, schemaWatchOf } from './redis-schema.ts';
import type { Keys, Scripts } from './scripts.ts';
import { keyidsOf, nonceCounts, sweepsOfAll } from './nonce-counts.ts';
import { registryOf } from './sender-list.ts';
import { silentSweeper } from './redis-senders.ts';
import { withTimeout } from './send-script.ts';
import { ADVICE, attachedTo, checkServers, durabilityOf } from './redis-settings.ts';
import { watchOf } from './identity-check.ts';
import type { RunScript, Session } from './sender-list.ts';
import { isError } from '../../shared/realms.ts';

export interface SessionOptions {
  readonly client: RedisClient;
  readonly keys: Keys;
  readonly scripts: Scripts;
  readonly clockOffsetMs: () => number;
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  readonly waitReplicas: number | undefined;
  readonly barrier: Barrier;
  /**
   * Called if the keys of an open store turn out to be another store's. If this function throws, calls of the store
   * reject with its error.
   */
  readonly identityChanged: (identity: StoreIdentity) => void;
}

/**
 * Opens a session: a checked connection that runs scripts.
 *
 * @throws ConfigError if the servers' settings are unsuitable; Fault `store_unavailable` if no server answers.
 */
export async function openSession(options: SessionOptions): Promise<Session> {
  const connection = duplicateOf(options.client, options.timeoutMs);
  let connectionError: unknown;
  // The client emits errors of the connection as an event. The last error is kept for the message if opening fails.
  connection.on('error', (error) => {
    connectionError = error;
  });
  try {
    await connected(connection, options.timeoutMs);
    await checkServers(connection);
    const identity = await identify(connection, options.keys);
    await loadScripts(connection, options.scripts);
    const onDisk = isOnDisk(await durabilityOf(connection, options.barrier.seen));
    const session = sessionOf(connection, { ...options, onDisk, identity });
    // The senders are read because only a call shows if the Redis user may run scripts on the store's keys.
    await session.registry.senders();
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

/**
 * Loads the scripts into every primary, so that the first delivery, too, takes one round trip. If a server forgets a
 * script, it is sent again.
 */
async function loadScripts(connection: RedisConnection, scripts: Scripts): Promise<void> {
  for (const node of primaries(connection)) {
    await Promise.all(Object.values(scripts).map(({ source }) => node.call('SCRIPT', 'LOAD', source)));
  }
}

const isOnDisk = (level: Durability | 'unknown'): boolean => level === 'disk' || level === 'failover';

function sessionOf(
  connection: RedisConnection,
  options: SessionOptions & { readonly onDisk: boolean; readonly identity: StoreIdentity },
): Session {
  const { keys, scripts, barrier } = options;
  let { identity, onDisk: isOnDiskNow } = options;
  const identityChanged = (found: StoreIdentity): void => {
    options.identityChanged(found);
    identity = { ...found, isNew: false };
  };
  const schema = schemaWatchOf(connection, { ...options, known: () => identity.id, identityChanged });
  const watches = { schema, kept: watchOf(connection, options) };
  const lane = pipelineOf(connection, watches, { ...options, ...barrier });
  const counts = nonceCounts();
  const offsetMs = (): number => Math.round(options.clockOffsetMs());
  const sweepNext = silentSweeper(() => session);
  const also = async (): Promise<void> => {
    barrier.seen(await attachedTo(connection));
    await sweepNext();
  };
  const session: Session = {
    run: runOf(lane.run, options, offsetMs),
    read: runOf(lane.read, options, offsetMs),
    slots: { areApart: isCluster(connection) },
    registry: registryOf({ lane, scripts, keys, counts, also }),
    identity: () => {
      const before = identity;
      identity = { ...identity, isNew: false };
      return before;
    },
    counts,
    keyids: keyidsOf(),
    sweepsOfAll: sweepsOfAll(),
    offsetMs,
    durability: async () => {
      await checkSchema(connection, keys);
      const level = await durabilityOf(connection, barrier.seen);
      isOnDiskNow = isOnDisk(level);
      return level;
    },
    advice: () => (isOnDiskNow ? `Redis: ${barrier.advice()}` : ADVICE),
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
    const of = typeof sender === 'string' ? keys.of(sender) : sender.flatMap(keys.of);
    return send({ script: scripts[script], keys: of, args });
  };
}

async function timeOf(connection: RedisConnection, { timeoutMs }: SessionOptions): Promise<number> {
  const [node = connection] = primaries(connection);
  const [seconds, micros] = (await withTimeout(node.call('TIME'), timeoutMs)) as readonly unknown[];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
