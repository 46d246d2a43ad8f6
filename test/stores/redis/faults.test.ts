import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RedisStore } from '../../../src/stores/redis.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { inTime } from '../../support/in-time.ts';
import { startLink } from '../../support/redis-link.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startServer, until } from '../../support/redis.ts';
import { clientOf } from '../redis-harness.ts';
import { acceptRequest, key } from '../requests.ts';

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;

describe('a server with a fault', () => {
  let server: RedisServer;
  let store: RedisStore;

  beforeEach(async () => {
    server = await startServer(ON_DISK);
    store = redisStore({ client: clientOf.port(server.port) });
    await store.open();
  });

  afterEach(async () => {
    await store.close();
    await server.remove();
  });

  /** Until an accept is answered; what it was answered before that must be `store_unavailable`. */
  async function recovered(request = acceptRequest({ key: key(999) })): Promise<string> {
    let kind = '';
    await until('the store answers', async () => {
      try {
        kind = (await store.accept(request)).kind;
        return true;
      } catch (error) {
        expect(codeOf(error)).toBe('store_unavailable');
        return false;
      }
    });
    return kind;
  }

  it('fails calls with store_unavailable when out of memory, writes nothing half, and recovers', async () => {
    const first = acceptRequest();
    await store.accept(first);
    const used = await ask(server.port, (redis) => redis.info('memory'));
    const bytes = /used_memory:(\d+)/.exec(used)?.[1] ?? '';
    const limit = (max: string): Promise<unknown> =>
      ask(server.port, (redis) => redis.config('SET', 'maxmemory', max));
    const before = await ask(server.port, (redis) => redis.dbsize());
    await limit(bytes);
    const large = acceptRequest({ key: key(2), task: 'task-2', body: 'x'.repeat(1_000_000) });
    await expect(store.accept(large)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('raise maxmemory') as string,
    });
    expect(await ask(server.port, (redis) => redis.dbsize())).toBe(before);
    await limit('0');
    expect((await store.accept(large)).kind).toBe('won');
    expect((await store.accept(first)).kind).toBe('won');
  });

  it('has no effect when its script cache is flushed', async () => {
    await store.accept(acceptRequest());
    for (const asked of [store, store]) {
      await ask(server.port, (redis) => redis.script('FLUSH'));
      expect((await asked.accept(acceptRequest())).kind).toBe('in-flight');
    }
  });

  it('keeps answered events over a restart, without a restart of the store', async () => {
    const first = acceptRequest();
    expect((await store.accept(first)).kind).toBe('won');
    await server.kill();
    await expect(store.accept(acceptRequest({ key: key(2) }))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await server.start();
    expect(await recovered(acceptRequest())).toBe('in-flight');
    const of = { sender: first.sender, key: key(1), owner: first.acceptId };
    expect(await store.complete({ ...of, retentionMs: 1000 })).toBe('done');
  });

  it('restarts under load: each accept is answered or fails, and all answered events are kept', async () => {
    const results: { n: number; kind?: string; error?: unknown }[] = [];
    const end = new AbortController();
    const loads = Array.from({ length: 8 }, async (_, load) => {
      for (let n = load; !end.signal.aborted; n += 8) {
        const draft = { key: key(n), sender: 'https://load.example/mcp' };
        const result = await store.accept(acceptRequest(draft)).then(
          ({ kind }) => ({ n, kind }),
          (error: unknown) => ({ n, error }),
        );
        results.push(result);
      }
    });
    const answered = (): number => results.filter(({ kind }) => kind !== undefined).length;
    await until('some were answered', async () => answered() > 200);
    await server.kill();
    await until('some were not', async () => results.some(({ error }) => error !== undefined));
    const before = answered();
    await server.start();
    await until('more were answered', async () => answered() > before + 200);
    end.abort();
    await Promise.all(loads);
    for (const { error } of results) if (error !== undefined) expect(codeOf(error)).toBe('store_unavailable');
    for (const { n, kind } of results) {
      if (kind === undefined) continue;
      expect(kind).toBe('won');
      expect(await store.peek('https://load.example/mcp', key(n)), key(n)).toBe('busy');
    }
  });

  it('fails calls with store_unavailable while it is a replica, and recovers', async () => {
    await store.accept(acceptRequest());
    await ask(server.port, (redis) => redis.replicaof('127.0.0.1', 1));
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
    await ask(server.port, (redis) => redis.replicaof('NO', 'ONE'));
    expect(await recovered(acceptRequest())).toBe('in-flight');
  });

  it('replaces a connection that the server closed', async () => {
    await store.accept(acceptRequest());
    await ask(server.port, (redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
    expect(await recovered(acceptRequest())).toBe('in-flight');
  });
});

describe('a connection that stops answering', () => {
  it('fails with store_unavailable in time and is replaced', async () => {
    const server = await startServer(ON_DISK);
    const link = await startLink(server.port);
    const store = redisStore({ client: clientOf.port(link.port), timeoutMs: 300 });
    await inTime(() => store.open());
    await inTime(() => store.accept(acceptRequest()));
    link.cut();
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'Redis: no answer within 300 ms.',
    });
    link.retarget(server.port);
    await until('the store answers', () =>
      store.accept(acceptRequest()).then(
        ({ kind }) => kind === 'in-flight',
        () => false,
      ),
    );
    await store.close();
    await link.close();
    await server.remove();
  });

  it('does not block close()', async () => {
    const server = await startServer(ON_DISK);
    const link = await startLink(server.port);
    const store = redisStore({ client: clientOf.port(link.port), timeoutMs: 300, waitReplicas: 1 });
    await inTime(() => store.open());
    link.cut();
    const lost = store.accept(acceptRequest());
    await Promise.all([expect(lost).rejects.toMatchObject({ code: 'store_unavailable' }), store.close()]);
    await link.close();
    await server.remove();
  });
});
