import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { duplicateOf, type RedisConnection, watchOf } from '../../../src/stores/redis/for-tests.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startServer, until } from '../../support/redis.ts';
import { clientOf } from '../redis-harness.ts';

const TIMEOUT_MS = 30_000;
const NOT_DURABLE = { name: 'Fault', code: 'not_durable' };

/** What a client says of a connection that is gone, or cannot be had. */
const LOST =
  /Connection is closed|ECONNREFUSED|ECONNRESET|EPIPE|Stream isn't writeable|max retries per request|LOADING/i;

/** The deadline of a call that begins now. */
const late = (): number => performance.now() + TIMEOUT_MS;

let server: RedisServer;
let connection: RedisConnection;

beforeEach(async () => {
  server = await startServer(ON_DISK);
  connection = duplicateOf(clientOf.port(server.port), TIMEOUT_MS);
  connection.on('error', () => undefined);
  await connection.connect();
});

afterEach(async () => {
  vi.restoreAllMocks();
  connection.disconnect();
  await server.remove();
});

const set = (name: string, value: string): Promise<unknown> =>
  ask(server.port, (redis) => redis.config('SET', name, value));

describe('repeated checks of the settings', () => {
  it('wait for the interval, then come with each call until the settings are fixed', async () => {
    const watch = watchOf(connection, { timeoutMs: TIMEOUT_MS, onDisk: true });
    await set('maxmemory-policy', 'allkeys-lru');
    await watch.passed(late());
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001);
    const together = [watch.passed(late()), watch.passed(late())];
    for (const looked of together) await expect(looked).rejects.toMatchObject(NOT_DURABLE);
    await expect(watch.passed(late())).rejects.toMatchObject(NOT_DURABLE);
    await set('maxmemory-policy', 'noeviction');
    await watch.passed(late());
    // From here on it is time again after 10 s.
    await set('maxmemory-policy', 'allkeys-lru');
    await watch.passed(late());
  });

  it('come with each new connection', async () => {
    const watch = watchOf(connection, { timeoutMs: TIMEOUT_MS, onDisk: true });
    await set('appendfsync', 'everysec');
    const again = new Promise<void>((resolve) => {
      connection.once('ready', resolve);
    });
    await ask(server.port, (redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
    await again;
    await expect(watch.passed(late())).rejects.toMatchObject(NOT_DURABLE);
  });

  it('check only the eviction policy when answers were not on disk at open()', async () => {
    const watch = watchOf(connection, { timeoutMs: TIMEOUT_MS, onDisk: false });
    await set('appendonly', 'no');
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001);
    await watch.passed(late());
    await set('maxmemory-policy', 'volatile-lru');
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 20_002);
    await expect(watch.passed(late())).rejects.toMatchObject(NOT_DURABLE);
  });

  it('throw the client’s error when the server does not answer, and are repeated', async () => {
    const watch = watchOf(connection, { timeoutMs: TIMEOUT_MS, onDisk: true });
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001);
    const thrown: unknown[] = [];
    const isPassed = (): Promise<boolean> =>
      Promise.resolve(watch.passed(late())).then(
        () => true,
        (error: unknown) => {
          thrown.push(error);
          return false;
        },
      );
    await server.kill();
    await until('it is noticed', async () => !(await isPassed()));
    await server.start();
    await until('it is looked at', isPassed);
    expect(thrown.length).toBeGreaterThan(0);
    for (const error of thrown) {
      // Of the client, in its words: neither a Fault of ours nor a mistake in the test.
      expect(error).not.toHaveProperty('name', 'Fault');
      expect(String(error)).toMatch(LOST);
    }
  });
});
