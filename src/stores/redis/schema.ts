import type { StoreIdentity } from '../contract.ts';
import { unknownVersion, whileRunning, lookAgain } from '../schema-version.ts';
import { type RedisConnection, isCluster } from './client.ts';
import type { Keys } from './scripts.ts';
import { textOf } from './rows.ts';
import { withTimeout } from './send.ts';
import { isSilence, lookMs } from './settings.ts';
import { type Watch, watchBy } from './watch.ts';

/**
 * Which store this is, made where it has no identity yet, in one step; it never expires. One that has a version or a
 * registry already, of whatever version, is not new.
 */
const IDENTIFY = `
local known = redis.call('EXISTS', KEYS[2], KEYS[3])
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return { ARGV[1], known == 0 and 1 or 0 } end
return { redis.call('GET', KEYS[1]), 0 }`;

/** Before the version is set. `isNew`: by this very call. */
export async function identify(connection: RedisConnection, { identity }: Keys): Promise<StoreIdentity> {
  const reply = await connection.call('EVAL', IDENTIFY, '3', ...identity, globalThis.crypto.randomUUID());
  const [id, made] = reply as readonly unknown[];
  return { id: textOf(id), isNew: Number(made) === 1 };
}

/**
 * The version of what the keys mean: their names and types (`lua/rows.lua`, `lua/register.lua`) and what stands in a row.
 * It stands at `<prefix>{registry}:v`, without an expiry; where that is absent it is 1.
 *
 * What has a version is never changed within it: a test reads keys that an older release wrote. A release that means
 * something else by them has the next version, and new names for all keys. Its open sets the version first, so that older
 * processes refuse from their next look on (10 s); it does not wait for that, because each script that takes a sender over
 * leaves a value of another type under the old names, at which every older script fails that would begin something
 * (`takeover.ts`).
 */
const VERSION = 2;

/** @throws ConfigError where a newer package has changed what the keys mean. */
export async function checkSchema(connection: RedisConnection, key: string): Promise<number> {
  const version = await connection.call('GET', key);
  if (version === null) return 1;
  const known = Array.from({ length: VERSION }, (_, before) => before + 1);
  const found = known.find((one) => version === String(one));
  if (found !== undefined) return found;
  const at = { store: 'redisStore', place: 'the keys have', own: 'a prefix', known: VERSION };
  throw unknownVersion(at, version);
}

/** What older processes look at. @throws ConfigError as `checkSchema`. */
export async function raiseSchema(connection: RedisConnection, key: string): Promise<void> {
  if ((await checkSchema(connection, key)) < VERSION) await connection.call('SET', key, String(VERSION));
}

interface SchemaWatchOptions {
  readonly keys: Keys;
  readonly timeoutMs: number;
  readonly clockOffsetMs: () => number;
  /** The identity that the store has, as far as is known. */
  readonly known: () => string;
  readonly identityChanged: (identity: StoreIdentity) => void;
}

/**
 * Version and identity, every 10 s. Keys that are gone (`FLUSHALL`) get both anew.
 * @throws Fault `misconfigured` where `checkSchema` or `identityChanged` throws ConfigError.
 */
export function schemaWatchOf(
  connection: RedisConnection,
  { keys, timeoutMs, clockOffsetMs, known, identityChanged }: SchemaWatchOptions,
): Watch {
  const check = async (): Promise<void> => {
    await checkSchema(connection, keys.version);
    const found = await identify(connection, keys);
    if (found.id === known()) return;
    await raiseSchema(connection, keys.version);
    identityChanged(found);
  };
  const look = async (): Promise<void> => {
    try {
      await withTimeout(check(), lookMs(connection, timeoutMs));
    } catch (error) {
      // The node of this one slot: calls of the others go on.
      if (isCluster(connection) && isSilence(error)) return;
      throw whileRunning(error);
    }
  };
  return watchBy(lookAgain(look, () => performance.now() + clockOffsetMs()));
}
