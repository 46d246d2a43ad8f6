// Reads and checks the version and the identity of a store's keys on Redis (admission.md §7.5, §7.7).
// Called by redis-session.ts, at the start and every 10 s.
import type { StoreIdentity } from '../store.ts';
import { lookAgain, whileRunning, wrongVersion } from '../schema-version.ts';
import { type RedisConnection, isCluster } from './redis-client.ts';
import { type Keys, SCHEMA_VERSION } from './scripts.ts';
import { textOf } from './redis-rows.ts';
import { withTimeout } from './send-script.ts';
import { isSilence, lookMs } from './redis-settings.ts';
import { type Watch, watchBy } from './identity-check.ts';

/**
 * The script that reads version and identity in one step, and creates each that is missing. Both never expire. If the
 * keys have another version, nothing is created. Version 1 had no version key: its keys are recognised by its list of
 * senders.
 */
const IDENTIFY = `
local version = redis.call('GET', KEYS[2]) or (redis.call('EXISTS', KEYS[3]) == 1 and '1')
if version and version ~= ARGV[2] then return { version } end
if not version then redis.call('SET', KEYS[2], ARGV[2]) end
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return { ARGV[2], ARGV[1], version and 0 or 1 } end
return { ARGV[2], redis.call('GET', KEYS[1]), 0 }`;

/**
 * Returns the store's identity. `isNew` is true if this call created both the version and the identity.
 *
 * @throws ConfigError if the keys have another version.
 */
export async function identify(connection: RedisConnection, { identity }: Keys): Promise<StoreIdentity> {
  const own = globalThis.crypto.randomUUID();
  const reply = await connection.call('EVAL', IDENTIFY, '3', ...identity, own, String(SCHEMA_VERSION));
  const [version, id, made] = reply as readonly unknown[];
  expectVersion(version);
  return { id: textOf(id), isNew: Number(made) === 1 };
}

/**
 * Checks the version of the keys. Keys without a version are accepted, because `identify` creates it.
 *
 * @throws ConfigError if the keys have another version.
 */
export async function checkSchema(connection: RedisConnection, { version }: Keys): Promise<void> {
  const found = await connection.call('GET', version);
  if (found !== null) expectVersion(found);
}

function expectVersion(found: unknown): void {
  const text = textOf(found);
  if (text === String(SCHEMA_VERSION)) return;
  const at = { store: 'redisStore', place: 'the keys have', own: 'a prefix' };
  // The key may be another program's and contain anything. So only printable text gets into the message, which is
  // written to logs and terminals.
  const shown = /^[\x21-\x7e]{1,40}$/.test(text) ? text : 'that cannot be printed';
  throw wrongVersion(at, SCHEMA_VERSION, /^[1-9]\d*$/.test(text) ? Number(text) : shown);
}

interface SchemaWatchOptions {
  readonly keys: Keys;
  readonly timeoutMs: number;
  readonly clockOffsetMs: () => number;
  /** Returns the identity of the store that this process last read. */
  readonly known: () => string;
  readonly identityChanged: (identity: StoreIdentity) => void;
}

/**
 * Checks version and identity every 10 s. If the keys were deleted (`FLUSHALL`), both are created again.
 *
 * @throws Fault `misconfigured` if `identify` or `identityChanged` throws ConfigError.
 */
export function schemaWatchOf(
  connection: RedisConnection,
  { keys, timeoutMs, clockOffsetMs, known, identityChanged }: SchemaWatchOptions,
): Watch {
  const check = async (): Promise<void> => {
    const found = await identify(connection, keys);
    if (found.id !== known()) identityChanged(found);
  };
  const look = async (): Promise<void> => {
    try {
      await withTimeout(check(), lookMs(connection, timeoutMs));
    } catch (error) {
      // In a Cluster only the node that has these keys does not answer. Calls to the other nodes must go on, so this is
      // no error.
      if (isCluster(connection) && isSilence(error)) return;
      throw whileRunning(error);
    }
  };
  return watchBy(lookAgain(look, () => performance.now() + clockOffsetMs()));
}
