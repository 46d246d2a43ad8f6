import type { StoreIdentity } from '../contract.ts';
import type { Connection } from './client.ts';
import type { Keys } from './keys.ts';
import { textOf } from './rows.ts';

/**
 * Which store this is, made where it has no identity yet, in one step; it never expires. One that has a version or a
 * registry already, of whatever version, is not new.
 */
const IDENTIFY = `
local known = redis.call('EXISTS', KEYS[2], KEYS[3])
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return { ARGV[1], known == 0 and 1 or 0 } end
return { redis.call('GET', KEYS[1]), 0 }`;

/** Before the version is set. `isNew`: by this very call. */
export async function identify(connection: Connection, { identity }: Keys): Promise<StoreIdentity> {
  const reply = await connection.call('EVAL', IDENTIFY, '3', ...identity, globalThis.crypto.randomUUID());
  const [id, made] = reply as readonly unknown[];
  return { id: textOf(id), isNew: Number(made) === 1 };
}
