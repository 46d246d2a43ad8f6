import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import type { RedisServer } from './redis-server.ts';
import { startServer } from './redis-server.ts';

export { startServer } from './redis-server.ts';
export type { RedisServer } from './redis-server.ts';

/** Every write is on disk before its reply. */
export const ON_DISK = { appendonly: 'yes', appendfsync: 'always' } as const;

/** Diskless replication starts after a pause by default. */
export const NO_DELAY = { 'repl-diskless-sync-delay': '0', 'repl-ping-replica-period': '1' } as const;

/** A server to use, and how to be done with it. */
export interface RedisUrl {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** The server of `REDIS_URL`, else one of the tests' own: AOF always. */
export async function startRedis(): Promise<RedisUrl> {
  const given = process.env['REDIS_URL'];
  if (given !== undefined && given !== '') return { url: given, stop: async () => undefined };
  const server = await startServer(ON_DISK);
  return { url: `redis://127.0.0.1:${server.port}`, stop: server.remove };
}

/** Waits until `check` says so. @throws Error after two minutes. */
export async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`not so after two minutes: ${what}`);
    await sleep(20);
  }
}

/** Runs `ask` on a connection to one server. */
export async function ask<T>(port: number, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ port, host: '127.0.0.1', lazyConnect: true });
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

export interface RedisCluster {
  /** The primaries. */
  readonly nodes: readonly RedisServer[];
  readonly stop: () => Promise<void>;
}

const PRIMARIES = 3;

/** A Cluster of three primaries, AOF always. @param replicas each has one. */
export async function startRedisCluster({ replicas = false } = {}): Promise<RedisCluster> {
  const all = await Promise.all(Array.from({ length: replicas ? 2 * PRIMARIES : PRIMARIES }, startNode));
  const nodes = all.slice(0, PRIMARIES);
  const share = Math.ceil(16_384 / PRIMARIES);
  for (const [index, { port }] of nodes.entries()) {
    const slots = [index * share, Math.min(16_383, (index + 1) * share - 1)];
    await ask(port, (redis) => redis.call('CLUSTER', 'ADDSLOTSRANGE', ...slots.map(String)));
  }
  for (const { port } of all) {
    for (const other of all) {
      await ask(port, (redis) => redis.call('CLUSTER', 'MEET', '127.0.0.1', String(other.port), other.bus));
    }
  }
  for (const { port } of all) await until('the cluster is whole', () => isWhole(port, PRIMARIES));
  for (const [index, { port }] of all.slice(PRIMARIES).entries()) {
    const primary = nodes[index]?.port ?? 0;
    const id = await ask(primary, (redis) => redis.cluster('MYID'));
    await until('the replica knows its primary', () => replicates(port, id));
    await until('the replica is in touch', () => hasReplica(primary));
  }
  return { nodes, stop: () => inTurn(all.map(({ remove }) => remove)) };
}

/** Refused until the node has heard of the other one. */
function replicates(port: number, id: string): Promise<boolean> {
  return ask(port, async (redis) => {
    const reply: unknown = await redis.cluster('REPLICATE', id).catch(() => 'not yet');
    return reply === 'OK';
  });
}

async function startNode(): Promise<RedisServer & { readonly bus: string }> {
  const bus = String(await freePort());
  const cluster = { 'cluster-enabled': 'yes', 'cluster-port': bus, 'cluster-node-timeout': '2000' };
  return { ...(await startServer({ ...ON_DISK, ...NO_DELAY, ...cluster })), bus };
}

async function isWhole(port: number, size: number): Promise<boolean> {
  const info = await ask(port, (redis) => redis.cluster('INFO'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_size:${size}`);
}

/** A primary with one replica, and a Sentinel that watches them. */
export interface RedisSentinel {
  readonly name: string;
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
  readonly stop: () => Promise<void>;
}

/** A primary with a replica, AOF always on both. @param settings beside these, for both. */
export async function startPair(
  settings: Readonly<Record<string, string>> = {},
): Promise<Pick<RedisSentinel, 'primary' | 'replica' | 'stop'>> {
  const both = { ...ON_DISK, ...NO_DELAY, ...settings };
  const primary = await startServer(both);
  const replica = await startServer({ ...both, replicaof: `127.0.0.1 ${primary.port}` });
  await until('the replica is in touch', () => hasReplica(primary.port));
  return { primary, replica, stop: () => inTurn([replica.remove, primary.remove]) };
}

/** Whether so many replicas are in touch and up to date. */
export async function hasReplica(port: number, count: number = 1): Promise<boolean> {
  const info = await ask(port, (redis) => redis.info('replication'));
  return info.split('state=online').length > count;
}

/** A pair, with another replica. */
export async function startThree(): Promise<
  Pick<RedisSentinel, 'primary' | 'replica' | 'stop'> & { readonly other: RedisServer }
> {
  const pair = await startPair();
  const replicaof = `127.0.0.1 ${pair.primary.port}`;
  const other = await startServer({ ...ON_DISK, ...NO_DELAY, replicaof });
  await until('both replicas are in touch', () => hasReplica(pair.primary.port, 2));
  return { ...pair, other, stop: () => inTurn([other.remove, pair.stop]) };
}

/** A pair, or three nodes, and a Sentinel that calls the primary down after one second, on its own. */
export async function startSentinel(replicas: 1 | 2 = 1): Promise<RedisSentinel> {
  const pair = await (replicas === 1 ? startPair() : startThree());
  const name = 'webhooks';
  const watch = [
    `sentinel monitor ${name} 127.0.0.1 ${pair.primary.port} 1`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 3000`,
  ];
  const sentinel = await startServer({}, watch.join('\n'));
  await until('the Sentinel knows the replicas', async () =>
    (await ask(sentinel.port, (redis) => redis.info('sentinel'))).includes(`slaves=${replicas}`),
  );
  return { ...pair, name, sentinel, stop: () => inTurn([sentinel.remove, pair.stop]) };
}

async function inTurn(steps: readonly (() => Promise<void>)[]): Promise<void> {
  for (const step of steps) await step();
}
