import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Cluster, Redis } from 'ioredis';
import { ConfigError, createReceiver, Fault } from '../../../src/index.ts';
import {
  type RedisClient,
  type RedisStore,
  redisStore,
  type RedisStoreOptions,
} from '../../../src/stores/redis.ts';
import { freePort } from '../../support/free-port.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import { ask, ON_DISK, startPair, startRedisCluster, startServer } from '../../support/redis.ts';
import { startLink } from '../../support/redis-link.ts';
import type { RedisServer } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest } from '../requests.ts';

const stores: RedisStore[] = [];

function storeOn(client: RedisClient, options: Partial<RedisStoreOptions> = {}): RedisStore {
  const store = redisStore({ client, prefix: newPrefix(), timeoutMs: PATIENT_MS, ...options });
  stores.push(store);
  return store;
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

const set = (server: RedisServer, name: string, value: string): Promise<unknown> =>
  ask(server.port, (redis) => redis.config('SET', name, value));

/** What `ready()` says of a store, or nothing. */
async function readiness(store: RedisStore): Promise<string | undefined> {
  const receiver = createReceiver({
    publicUrl: 'https://buyer.example/webhooks',
    senders: [{ agentUrl: 'https://seller.example/mcp', auth: { hmac: { secret: 's-'.repeat(16) } } }],
    store,
    handlers: { other: () => undefined },
  });
  try {
    await receiver.ready();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  } finally {
    await receiver.stop();
  }
}

describe('settings of one server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
  });
  afterAll(() => server.remove());

  afterEach(async () => {
    await set(server, 'maxmemory-policy', 'noeviction');
    await set(server, 'appendonly', 'yes');
    await set(server, 'appendfsync', 'always');
    await set(server, 'no-appendfsync-on-rewrite', 'no');
  });

  it.each(['allkeys-lru', 'volatile-ttl', 'allkeys-random'])(
    'maxmemory-policy %s is refused, with the setting to change',
    async (policy) => {
      await set(server, 'maxmemory-policy', policy);
      const opening = storeOn(clientOf.port(server.port)).open();
      await expect(opening).rejects.toThrow(ConfigError);
      await expect(opening).rejects.toThrow(`${policy}, which drops acknowledged events`);
      await expect(opening).rejects.toThrow('Set maxmemory-policy noeviction.');
    },
  );

  it('opens after the policy is changed', async () => {
    await set(server, 'maxmemory-policy', 'allkeys-lru');
    const store = storeOn(clientOf.port(server.port));
    await expect(store.open()).rejects.toThrow(ConfigError);
    await set(server, 'maxmemory-policy', 'noeviction');
    await store.open();
    expect(await store.durability()).toBe('disk');
  });

  it.each([
    ['appendfsync', 'everysec'],
    ['appendfsync', 'no'],
    ['no-appendfsync-on-rewrite', 'yes'],
    ['appendonly', 'no'],
  ])('%s %s gives durability process, read anew each time', async (name, value) => {
    const store = storeOn(clientOf.port(server.port));
    await store.open();
    expect(await store.durability()).toBe('disk');
    await set(server, name, value);
    expect(await store.durability()).toBe('process');
  });

  it('AOF off is refused by ready() where disk is required, with the settings to change', async () => {
    await set(server, 'appendonly', 'no');
    const message = await readiness(storeOn(clientOf.port(server.port)));
    expect(message).toContain("durability: { require: 'disk' }");
    expect(message).toContain('appendonly yes, appendfsync always');
  });

  it('AOF always is enough for ready()', async () => {
    expect(await readiness(storeOn(clientOf.port(server.port)))).toBeUndefined();
  });

  it('without the right to CONFIG the durability is unknown and the policy is still read', async () => {
    await ask(server.port, (redis) =>
      redis.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-config'),
    );
    const client = (): Redis =>
      new Redis({ port: server.port, username: 'app', password: 'secret', lazyConnect: true });
    const store = storeOn(client());
    await store.open();
    expect(await store.durability()).toBe('unknown');
    await set(server, 'appendonly', 'no');
    expect(await store.durability()).toBe('process');
    await set(server, 'maxmemory-policy', 'allkeys-lru');
    await expect(storeOn(client()).open()).rejects.toThrow('noeviction');
  });

  it.each([
    ['without the commands', ['~*', '+info', '+ping', '+client']],
    ['without the commands in scripts', ['~*', '+info', '+config', '+script', '+evalsha', '+eval']],
    ['without the keys', ['~other:*', '+@all']],
  ])('a user %s is refused', async (_name, rules) => {
    await ask(server.port, (redis) =>
      redis.call('ACL', 'SETUSER', 'weak', 'reset', 'on', '>secret', ...rules),
    );
    const weak = new Redis({ port: server.port, username: 'weak', password: 'secret', lazyConnect: true });
    const opening = storeOn(weak).open();
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow('allow it its keys');
  });

  it('a wrong password is refused', async () => {
    const stranger = new Redis({ port: server.port, username: 'nobody', password: 'x', lazyConnect: true });
    const opening = storeOn(stranger).open();
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow('WRONGPASS');
  });

  it('without a server open() fails with store_unavailable and its address, and succeeds later', async () => {
    const port = await freePort();
    const store = storeOn(clientOf.port(port));
    const opening = store.open();
    await expect(opening).rejects.toThrow(Fault);
    await expect(opening).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`) as string,
    });
    const link = await startLink(server.port, port);
    await store.open();
    await store.close();
    await link.close();
  });

  it('without a node of the Cluster open() fails with store_unavailable', async () => {
    const client = new Cluster([{ port: await freePort(), host: '127.0.0.1' }], { lazyConnect: true });
    await expect(storeOn(client).open()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('replicas', () => {
  it('give durability failover only with AOF always and enough connected replicas', async () => {
    const { primary, replica, stop } = await startPair();
    const [waiting, asking, careless] = [
      storeOn(clientOf.port(primary.port)),
      storeOn(clientOf.port(primary.port), { waitReplicas: 2 }),
      storeOn(clientOf.port(primary.port), { waitReplicas: 0 }),
    ];
    for (const store of [waiting, asking, careless]) await store.open();
    expect(await waiting.durability()).toBe('failover');
    expect(await asking.durability()).toBe('disk');
    expect(await careless.durability()).toBe('disk');
    await set(primary, 'appendfsync', 'everysec');
    expect(await waiting.durability()).toBe('process');
    const onReplica = storeOn(clientOf.port(replica.port));
    await expect(onReplica.open()).rejects.toThrow('Connect it to the primary');
    await stop();
  });

  it('are refused by a Cluster for a client that is not one', async () => {
    const cluster = await startRedisCluster();
    const opening = storeOn(clientOf.port(cluster.nodes[0]?.port ?? 0)).open();
    await expect(opening).rejects.toThrow('new Redis.Cluster');
    await cluster.stop();
  });
});

describe('options', () => {
  const client = clientOf.port(1);

  it.each([
    ['a brace in prefix', { client, prefix: 'a{b' }],
    ['a brace in the client’s keyPrefix', { client: new Redis({ keyPrefix: '}', lazyConnect: true }) }],
    ['waitReplicas below 0', { client, waitReplicas: -1 }],
    ['waitTimeoutMs 0, which would wait with no limit', { client, waitTimeoutMs: 0 }],
    ['timeoutMs not whole', { client, timeoutMs: 0.5 }],
    ['another library’s client', { client: { status: 'ready', options: {}, duplicate: () => undefined } }],
  ])('%s is a ConfigError', (_name, options) => {
    expect(() => redisStore(options)).toThrow(ConfigError);
  });

  it('leave the client neither connected nor closed', async () => {
    const server = await startServer(ON_DISK);
    const own = clientOf.port(server.port);
    const store = storeOn(own);
    await store.open();
    expect(own.status).toBe('wait');
    await own.connect();
    await store.close();
    expect(await own.ping()).toBe('PONG');
    own.disconnect();
    await server.remove();
  });

  it('two prefixes on one server are two stores under the client’s keyPrefix', async () => {
    const server = await startServer(ON_DISK);
    const prefixed = new Redis({ port: server.port, keyPrefix: 'mine:', lazyConnect: true });
    const store = storeOn(prefixed, { prefix: 'one:' });
    const other = storeOn(clientOf.port(server.port), { prefix: 'one:' });
    await store.open();
    await other.open();
    const request = acceptRequest();
    expect((await store.accept(request)).kind).toBe('won');
    expect((await other.accept(request)).kind).toBe('won');
    const keys = await ask(server.port, (redis) => redis.keys('*'));
    expect(keys.every((key) => key.startsWith('mine:one:{') || key.startsWith('one:{'))).toBe(true);
    expect(keys.filter((key) => key.startsWith('mine:')).length).toBe(keys.length / 2);
    await server.remove();
  });
});
