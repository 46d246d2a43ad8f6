import type { Redis } from 'ioredis';

/** Redis's keys below a prefix: of each its type, and its members, bytes as base64. */
export type Keys = Readonly<Record<string, readonly [type: string, ...members: string[]]>>;

const base64 = (bytes: Buffer): string => bytes.toString('base64');

async function membersOf(redis: Redis, type: string, key: string): Promise<readonly Buffer[]> {
  if (type === 'string') return [(await redis.getBuffer(key)) ?? Buffer.of()];
  if (type === 'set') return redis.smembersBuffer(key);
  if (type === 'zset') return redis.zrangeBuffer(key, '0', '-1', 'WITHSCORES');
  const hash = await redis.hgetallBuffer(key);
  return Object.entries(hash).flatMap(([name, value]) => [Buffer.from(name), value]);
}

export async function dumpKeys(redis: Redis, prefix: string): Promise<Keys> {
  const keys: Record<string, readonly [string, ...string[]]> = {};
  for (const key of (await redis.keys(`${prefix}*`)).toSorted()) {
    const type = await redis.type(key);
    const members = await membersOf(redis, type, key);
    keys[key.slice(prefix.length)] = [type, ...members.map(base64)];
  }
  return keys;
}

export async function loadKeys(redis: Redis, prefix: string, keys: Keys): Promise<void> {
  for (const [name, [type, ...members]] of Object.entries(keys)) {
    const key = prefix + name;
    const values = members.map((member) => Buffer.from(member, 'base64'));
    if (type === 'string') await redis.set(key, values[0] ?? '');
    else if (type === 'set') await redis.sadd(key, ...values);
    else if (type === 'hash') await redis.hset(key, ...values);
    else
      for (let at = 0; at < values.length; at += 2)
        await redis.zadd(key, String(values[at + 1]), values[at] ?? '');
  }
}
