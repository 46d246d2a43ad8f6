import { createHash, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  checkKept,
  duplicateOf,
  laneOf,
  type RedisConnection,
  watchOf,
} from '../../../src/stores/redis/for-tests.ts';
import type { RedisCluster, RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startRedisCluster, startServer } from '../../support/redis.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import { clientOf } from '../redis-harness.ts';

const TIMEOUT_MS = 200;

/** Counts its runs. */
const SOURCE = "return redis.call('INCR', KEYS[1])";
const SCRIPT = { source: SOURCE, sha: createHash('sha1').update(SOURCE).digest('hex') };

const KNOWN = { passed: (): undefined => undefined };

/** A watch that looks until it is told to be done. */
function heldWatch(): { readonly watch: { passed: () => Promise<void> }; readonly release: () => void } {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { watch: { passed: () => held }, release: () => release() };
}

async function connectionTo(port: number): Promise<RedisConnection> {
  const connection = duplicateOf(clientOf.port(port), 30_000);
  connection.on('error', () => undefined);
  await connection.connect();
  return connection;
}

describe.each([
  ['one by one', 0],
  ['in batches', 1],
])('a call that was abandoned (calls go %s)', (_name, replicas) => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
    await ask(server.port, (redis) => redis.script('LOAD', SOURCE));
  });
  afterAll(() => server.remove());

  const options = { timeoutMs: TIMEOUT_MS, waitTimeoutMs: TIMEOUT_MS, replicas: () => replicas };
  const runs = (key: string): Promise<string | null> => ask(server.port, (redis) => redis.get(key));
  const given = { code: 'store_unavailable', message: `Redis: no answer within ${TIMEOUT_MS} ms.` };

  it('during the check of the settings is not sent afterwards', async () => {
    const connection = await connectionTo(server.port);
    const { watch, release } = heldWatch();
    const lane = laneOf(connection, { schema: KNOWN, kept: watch }, options);
    const key = randomUUID();
    await expect(lane.run({ script: SCRIPT, keys: [key], args: [] })).rejects.toMatchObject(given);
    release();
    await lane.idle();
    // Behind whatever was sent on this connection.
    await connection.call('PING');
    expect(await runs(key)).toBeNull();
    connection.disconnect();
  });

  it('because the connection was lost is not sent on the next one', async () => {
    const proxy = await startProxy(server.port);
    const connection = await connectionTo(proxy.port);
    const { watch, release } = heldWatch();
    const lane = laneOf(connection, { schema: KNOWN, kept: watch }, options);
    const key = randomUUID();
    const call = lane.run({ script: SCRIPT, keys: [key], args: [] });
    const gone = expect(call).rejects.toMatchObject({ code: 'store_unavailable' });
    // The client asks it of each new connection before it is ready.
    const asked = proxy.arm('hold', 'info');
    proxy.retarget(server.port);
    await asked.struck;
    release();
    await gone;
    asked.release();
    await expect.poll(() => connection.status).toBe('ready');
    await lane.idle();
    await connection.call('PING');
    expect(await runs(key)).toBeNull();
    connection.disconnect();
    await proxy.close();
  });
});

it('10,000 calls may wait, and the next one is refused at once', async () => {
  const server = await startServer(ON_DISK);
  const connection = await connectionTo(server.port);
  const { watch, release } = heldWatch();
  const options = { timeoutMs: TIMEOUT_MS, waitTimeoutMs: TIMEOUT_MS, replicas: () => 0 };
  const lane = laneOf(connection, { schema: KNOWN, kept: watch }, options);
  const call = { script: SCRIPT, keys: [randomUUID()], args: [] };
  const calls = await Promise.allSettled(Array.from({ length: 10_001 }, () => lane.run(call)));
  const isRefused = calls.map((one) => one.status === 'rejected' && /too many calls/.test(`${one.reason}`));
  expect([isRefused.indexOf(true), isRefused.filter(Boolean).length]).toEqual([10_000, 1]);
  release();
  await lane.idle();
  connection.disconnect();
  await server.remove();
});

describe('the check of the settings', () => {
  it('is waited for no longer than the call’s deadline', async () => {
    const server = await startServer(ON_DISK);
    const connection = await connectionTo(server.port);
    const watch = watchOf(connection, { timeoutMs: 30_000, onDisk: true });
    await ask(server.port, (redis) => redis.client('PAUSE', 30_000, 'ALL'));
    // Reads of the settings wait as long as the server is paused.
    (connection as unknown as Redis).emit('ready');
    await expect(watch.passed(performance.now() + 50)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'Redis: no answer.',
    });
    connection.disconnect();
    await server.remove();
  });
});

describe('a Cluster with a primary that does not answer', () => {
  let cluster: RedisCluster;
  let connection: RedisConnection;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    connection = duplicateOf(clientOf.cluster(cluster), 30_000);
    connection.on('error', () => undefined);
    await connection.connect();
  });
  afterAll(async () => {
    connection.disconnect();
    await cluster.stop();
  });

  const options = { onDisk: true, timeoutMs: 2000 };
  const at = (index: number): number => cluster.nodes[index]?.port ?? 0;
  const pause = (index: number): Promise<unknown> =>
    ask(at(index), (redis) => redis.client('PAUSE', 600_000, 'ALL'));
  const set = (index: number, value: string): Promise<unknown> =>
    ask(at(index), (redis) => redis.config('SET', 'appendfsync', value));

  it('is checked without it, and wrong settings of other primaries are still found', async () => {
    await checkKept(connection, options);
    await set(1, 'everysec');
    await pause(2);
    await expect(checkKept(connection, options)).rejects.toThrow(/were on disk when the store was opened/);
    await set(1, 'always');
    await checkKept(connection, options);
  });

  it('fails with store_unavailable when no primary answers', async () => {
    await pause(0);
    await pause(1);
    await expect(checkKept(connection, options)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
