import { afterEach, describe, expect, it, vi } from 'vitest';
import type { RedisStore } from '../../../src/stores/redis.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import type { Link } from '../../support/redis-link.ts';
import { startLink } from '../../support/redis-link.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ask, hasReplica, ON_DISK, startPair, startServer, until } from '../../support/redis.ts';
import { clientOf } from '../redis-harness.ts';
import { acceptRequest, key } from '../requests.ts';

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of undo.splice(0).toReversed()) await step();
});

/** A primary whose replica is behind a link of its own, and a link that leads to the primary. */
async function linkedPair(): Promise<{
  primary: RedisServer;
  replica: RedisServer;
  replication: Link;
  front: Link;
}> {
  const { primary, replica, stop } = await startPair();
  undo.push(stop);
  const replication = await startLink(primary.port);
  const front = await startLink(primary.port);
  undo.push(replication.close, front.close);
  await ask(replica.port, (redis) => redis.replicaof('127.0.0.1', replication.port));
  await until('the link is up', async () => {
    const info = await ask(replica.port, (redis) => redis.info('replication'));
    return info.includes(`master_port:${replication.port}`) && info.includes('master_link_status:up');
  });
  await until('the replica is in touch', () => hasReplica(primary.port));
  return { primary, replica, replication, front };
}

async function opened(port: number, waitReplicas?: number): Promise<RedisStore> {
  const store = redisStore({
    client: clientOf.port(port),
    waitTimeoutMs: 100,
    ...(waitReplicas !== undefined && { waitReplicas }),
  });
  undo.push(() => store.close());
  await store.open();
  return store;
}

describe('round trips', () => {
  it.each([
    ['without replicas', false],
    ['with a replica to wait for', true],
  ])('an accept takes one, %s', async (_name, replicated) => {
    // After one accept in 64 what has expired is swept.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const server = replicated ? undefined : await startServer(ON_DISK);
    if (server) undo.push(server.remove);
    const link = server ? await startLink(server.port) : (await linkedPair()).front;
    if (server) undo.push(link.close);
    const store = await opened(link.port);
    await store.accept(acceptRequest({ key: key(0) }));
    const before = link.turns();
    for (let n = 1; n <= 10; n += 1) {
      expect((await store.accept(acceptRequest({ key: key(n), task: `task-${n}` }))).kind).toBe('won');
    }
    expect(link.turns() - before).toBe(10);
  });

  it('concurrent accepts share their WAIT', async () => {
    const { front } = await linkedPair();
    const store = await opened(front.port);
    await store.accept(acceptRequest({ key: key(0) }));
    const before = front.turns();
    const all = Array.from({ length: 100 }, (_, n) => store.accept(acceptRequest({ key: key(n + 1) })));
    expect((await Promise.all(all)).every(({ kind }) => kind === 'won')).toBe(true);
    // Alone each would have one. How many go together is a matter of how fast they are written.
    expect(front.turns() - before).toBeLessThan(50);
  });
});

describe('a missing replica', () => {
  it('fails every answer with not_durable, duplicates and replays too, until it is back', async () => {
    const { primary, replica } = await linkedPair();
    const store = await opened(primary.port);
    const first = acceptRequest();
    const of = { sender: first.sender, key: key(1), owner: first.acceptId };
    await store.accept(first);
    expect(await store.complete({ ...of, retentionMs: 60_000 })).toBe('done');
    await replica.kill();
    const notDurable = { code: 'not_durable' };
    await expect(store.accept(acceptRequest({ key: key(2) }))).rejects.toMatchObject(notDurable);
    await expect(store.accept(acceptRequest())).rejects.toMatchObject(notDurable);
    await expect(store.accept({ ...first, acceptId: 'another-one' })).rejects.toMatchObject(notDurable);
    await expect(store.accept(first)).rejects.toMatchObject(notDurable);
    await expect(store.peek(first.sender, key(1))).rejects.toMatchObject(notDurable);
    await expect(store.complete({ ...of, retentionMs: 60_000 })).rejects.toMatchObject(notDurable);
    await replica.start();
    await until('the replica is in touch', () => hasReplica(primary.port));
    await until('the store answers', () =>
      store.accept({ ...first, acceptId: 'another-one' }).then(
        ({ kind }) => kind === 'replayed',
        () => false,
      ),
    );
    expect((await store.accept(acceptRequest())).kind).toBe('done');
  });

  it('is not waited for when none was ever seen', async () => {
    const server = await startServer(ON_DISK);
    undo.push(server.remove);
    const store = await opened(server.port);
    expect((await store.accept(acceptRequest())).kind).toBe('won');
  });
});

describe('a failover while the replication link is cut', () => {
  /** Accepts until some went by after the cut; gives the keys that were answered. */
  async function load(store: RedisStore, cut: () => void): Promise<string[]> {
    const answered: string[] = [];
    let tried = 0;
    const accept = async (): Promise<void> => {
      const name = key((tried += 1));
      const result = await store.accept(acceptRequest({ key: name })).catch(() => undefined);
      if (result?.kind === 'won') answered.push(name);
    };
    for (let n = 0; n < 25; n += 1) await Promise.all(Array.from({ length: 8 }, accept));
    cut();
    for (let n = 0; n < 5; n += 1) await Promise.all(Array.from({ length: 8 }, accept));
    return answered;
  }

  /** Answered events that the new primary does not know. */
  async function lost(waitReplicas: number): Promise<{ answered: number; lost: number }> {
    const { primary, replica, replication, front } = await linkedPair();
    const store = await opened(front.port, waitReplicas);
    const answered = await load(store, replication.cut);
    await primary.kill();
    await ask(replica.port, (redis) => redis.replicaof('NO', 'ONE'));
    front.retarget(replica.port);
    const judge = await opened(replica.port, 0);
    const seen = await Promise.all(answered.map((name) => judge.peek('https://seller.example/mcp', name)));
    return { answered: answered.length, lost: seen.filter((state) => state === 'absent').length };
  }

  it('loses no answered event when replicas are waited for', async () => {
    const result = await lost(1);
    expect(result.answered).toBeGreaterThan(100);
    expect(result.lost).toBe(0);
  });

  it('loses some without that, so that the test can fail', async () => {
    const result = await lost(0);
    expect(result.answered).toBeGreaterThan(100);
    expect(result.lost).toBeGreaterThan(0);
  });
});
