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

/** `redisStore`'s options. */
export interface RedisStoreOptions extends StoreOptions {
  /** Of ioredis, single, with Sentinels, or Cluster. The store works on a duplicate; this one stays yours to close. */
  readonly client: RedisClient;
  /** Begins every key; without `{` and `}`. `webhook:` by default. */
  readonly prefix?: string;
  /**
   * Replicas that must have confirmed what an answer rests on (`WAIT`); fewer: `not_durable`, 503, so also while one is
   * away. By default the most that were attached since the start where the receiver's `durability.require` is `failover`,
   * for which it can be no less than are attached; else 1 as soon as every primary is seen to have a replica, 0 before.
   * 0 turns it off.
   */
  readonly waitReplicas?: number;
  /** How long replicas are waited for. Ms; 1 000. */
  readonly waitTimeoutMs?: number;
  /** An operation that is not answered by then is `store_unavailable`. Ms; 3 000. */
  readonly timeoutMs?: number;
}

/** A store with an inbox, without transactions. */
export type RedisStore = Store &
  Required<Pick<Store, typeof Symbol.asyncDispose>> & { readonly inbox: StoreInbox };

/**
 * A store on Redis >= 6.2: any number of processes; best effort across failover, for Redis itself is. What is
 * written together is one Lua script on the keys of one sender, which are in one slot.
 *
 * Durability is `disk` with `appendonly yes` and `appendfsync always`; `failover` where all replicas confirm too; else
 * `process`; `unknown` where the settings may not be read. `maxmemory-policy` must be `noeviction`.
 * @throws ConfigError for options that cannot work; from `open()` for servers that cannot keep the promise.
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
