// The public entry `proto-webhooks/redis`: a store on Redis, single, with Sentinels or Cluster (admission.md §9.5).
// Called by users. `storeOf` makes the store from the backend in `redis/redis-backend.ts`.
import { ConfigError } from '../shared/errors.ts';
import type { Store, StoreInbox, StoreOptions } from './store.ts';
import { storeOf } from './optimistic/optimistic-store.ts';
import { requireOptions } from './text.ts';
import { redisBackend } from './redis/redis-backend.ts';
import type { RedisClient } from './redis/redis-client.ts';
import { checkClient, checkPrefix } from './redis/redis-client.ts';
import { keysOf, nodeDigests, scriptsOf } from './redis/scripts.ts';
import type { SessionOptions } from './redis/redis-session.ts';

export type { RedisClient } from './redis/redis-client.ts';

/**
 * Options of `redisStore`: the client, the prefix of the keys, the number of replicas that must confirm a write
 * (`waitReplicas`), and time limits.
 */
export interface RedisStoreOptions extends StoreOptions {
  /**
   * A client of ioredis: single, with Sentinels, or Cluster. The store works on a duplicate of the client; the caller
   * closes the client itself.
   */
  readonly client: RedisClient;
  /** The prefix of every key, without `{` and `}`. Default: `webhook:`. */
  readonly prefix?: string;
  /**
   * The number of replicas that must confirm a write before it is answered (`WAIT`). With fewer the operation fails
   * with `not_durable` (503), also while a replica is unreachable. With 0 no replica has to confirm.
   *
   * Default: 1 as soon as every primary was seen with a replica, 0 before. If the receiver requires durability
   * `failover`, the default is the largest number of replicas attached since the start. The option then cannot be lower
   * than the number of attached replicas.
   */
  readonly waitReplicas?: number;
  /** The longest wait for the confirmation of replicas, ms. Default: 1 000. */
  readonly waitTimeoutMs?: number;
  /** The time limit of an operation, ms. After it the operation fails with `store_unavailable`. Default: 3 000. */
  readonly timeoutMs?: number;
}

/** A store on Redis, made by `redisStore`. It works in both modes (`inline` and `inbox`) and has no transactions. */
export type RedisStore = Store &
  Required<Pick<Store, typeof Symbol.asyncDispose>> & { readonly inbox: StoreInbox };

/**
 * Creates a store on Redis 6.2 or newer, for any number of processes. Each write is one Lua script on the keys of
 * one sender, which share a slot. A write that no replica has confirmed can be lost in a failover, as with Redis
 * itself.
 *
 * `maxmemory-policy` must be `noeviction`. The settings of the servers decide what answered events survive
 * (durability):
 *
 * - `disk`, a power failure, with `appendonly yes` and `appendfsync always`;
 * - `failover`, the loss of the machine, if in addition all replicas confirm;
 * - `process`, only the end of the process, otherwise;
 * - `unknown` if the settings cannot be read.
 * @throws ConfigError for invalid options; from `open()` if a server is too old or its settings are unsuitable.
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { redisStore } from 'proto-webhooks/redis';
 *
 * export const store = redisStore({ client: new Redis('redis://localhost:6379') });
 * ```
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  const session = sessionOptions(options);
  return storeOf(redisBackend(session), { clockOffsetMs: session.clockOffsetMs, random: Math.random });
}

const OPTION_NAMES: Readonly<Record<keyof RedisStoreOptions, true>> = {
  client: true,
  prefix: true,
  waitReplicas: true,
  waitTimeoutMs: true,
  timeoutMs: true,
  clockOffsetMs: true,
};

function sessionOptions(options: RedisStoreOptions): Omit<SessionOptions, 'identityChanged' | 'barrier'> {
  requireOptions('redisStore', options, OPTION_NAMES);
  const { client, prefix = 'webhook:', waitReplicas, waitTimeoutMs = 1000, timeoutMs = 3000 } = options;
  checkClient(client);
  checkPrefix('prefix', prefix);
  const counts = { waitReplicas: waitReplicas ?? 0, waitTimeoutMs, timeoutMs };
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= (name === 'waitReplicas' ? 0 : 1)) continue;
    throw new ConfigError(`redisStore: ${name} is ${value}. Give a whole number.`);
  }
  const digests = nodeDigests();
  return {
    client,
    keys: keysOf(prefix, digests),
    scripts: scriptsOf(digests),
    clockOffsetMs: options.clockOffsetMs ?? (() => 0),
    timeoutMs,
    waitTimeoutMs,
    waitReplicas,
  };
}
