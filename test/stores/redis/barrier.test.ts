import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ConfigError, type Durability } from '../../../src/index.ts';
import { attachedIn, barrierOf } from '../../../src/stores/redis/for-tests.ts';
import { type RedisStore, redisStore, type RedisStoreOptions } from '../../../src/stores/redis.ts';
import type { Link } from '../../support/redis-link.ts';
import { startLink } from '../../support/redis-link.ts';
import type { RedisServer } from '../../support/redis.ts';
import {
  ask,
  hasReplica,
  NO_DELAY,
  ON_DISK,
  startPair,
  startServer,
  startThree,
  until,
} from '../../support/redis.ts';
import { payloads, said, testReceiver, type TestReceiver } from '../../receiver/setup.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import type { PayloadInput } from '../../../src/sender/sign.ts';
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

async function opened(port: number, waitReplicas?: number, waitTimeoutMs = 100): Promise<RedisStore> {
  const store = redisStore({
    client: clientOf.port(port),
    timeoutMs: 30_000,
    waitTimeoutMs,
    ...(waitReplicas !== undefined && { waitReplicas }),
  });
  undo.push(() => store.close());
  await store.open();
  return store;
}

/** A replica that is there confirms on a busy machine too. */
const SLOW_MS = 20_000;

describe('round trips', () => {
  it.each([
    ['without replicas', false],
    ['with a replica to wait for', true],
  ])('an accept takes one, %s', async (_name, replicated) => {
    // After one accept in 64 what has expired is swept.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    // Nothing is looked at again, as it is after 10 s.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    const server = replicated ? undefined : await startServer(ON_DISK);
    if (server) undo.push(server.remove);
    const link = server ? await startLink(server.port) : (await linkedPair()).front;
    if (server) undo.push(link.close);
    const store = await opened(link.port, undefined, SLOW_MS);
    await store.accept(acceptRequest({ key: key(0) }));
    const before = link.turns();
    for (let n = 1; n <= 10; n += 1) {
      expect((await store.accept(acceptRequest({ key: key(n), task: `task-${n}` }))).kind).toBe('won');
    }
    expect(link.turns() - before).toBe(10);
  });

  it('concurrent accepts share their WAIT', async () => {
    const { front } = await linkedPair();
    const store = await opened(front.port, undefined, SLOW_MS);
    await store.accept(acceptRequest({ key: key(0) }));
    const before = front.turns();
    const all = Array.from({ length: 100 }, (_, n) => store.accept(acceptRequest({ key: key(n + 1) })));
    expect((await Promise.all(all)).every(({ kind }) => kind === 'won')).toBe(true);
    // Alone each would have one. How many go together is a matter of how fast they are written.
    expect(front.turns() - before).toBeLessThan(50);
  });
});

describe('a missing replica', () => {
  const isConfirmed = async (call: () => Promise<unknown>): Promise<boolean> => {
    const answer = await call().catch((error: unknown) => error);
    if (!(answer instanceof Error)) return true;
    expect(answer).toMatchObject({ code: 'not_durable' });
    return false;
  };

  it('fails every answer with not_durable, duplicates and replays too, until it is back', async () => {
    const { primary, replica } = await linkedPair();
    const store = await opened(primary.port);
    const first = acceptRequest();
    const of = { sender: first.sender, key: key(1), owner: first.acceptId };
    // A replica that is there may be slow to confirm.
    await until('the accept is confirmed', () => isConfirmed(() => store.accept(first)));
    await until('the end is confirmed', () =>
      isConfirmed(() => store.complete({ ...of, retentionMs: 60_000 })),
    );
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
    let kind: string | undefined;
    await until('it is confirmed', () =>
      isConfirmed(async () => ({ kind } = await store.accept(acceptRequest()))),
    );
    expect(kind).toBe('done');
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
  async function load(before: RedisStore, after: RedisStore, cut: () => void): Promise<string[]> {
    const answered: string[] = [];
    let tried = 0;
    const accept = async (store: RedisStore): Promise<void> => {
      const name = key((tried += 1));
      const result = await store.accept(acceptRequest({ key: name })).catch(() => undefined);
      if (result?.kind === 'won') answered.push(name);
    };
    for (let n = 0; n < 25; n += 1) await Promise.all(Array.from({ length: 8 }, () => accept(before)));
    cut();
    for (let n = 0; n < 5; n += 1) await Promise.all(Array.from({ length: 8 }, () => accept(after)));
    return answered;
  }

  /** Answered events that the new primary does not know. */
  async function lost(waitReplicas: number): Promise<{ answered: number; lost: number }> {
    const { primary, replica, replication, front } = await linkedPair();
    // After the cut nobody confirms, however long that is waited for.
    const before = await opened(front.port, waitReplicas, SLOW_MS);
    const after = await opened(front.port, waitReplicas);
    const answered = await load(before, after, replication.cut);
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

describe('two replicas', () => {
  interface Three {
    readonly primary: RedisServer;
    readonly replica: RedisServer;
    readonly other: RedisServer;
  }
  const nodes: Partial<Three> = {};
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const { stop: end, ...three } = await startThree();
    stop = end;
    Object.assign(nodes, three);
  });
  afterAll(() => stop());
  const three = (): Three => nodes as Three;
  const promote = (): Promise<unknown> => ask(three().replica.port, (redis) => redis.replicaof('NO', 'ONE'));
  const attach = async (): Promise<void> => {
    const { primary, replica } = three();
    await ask(replica.port, (redis) => redis.replicaof('127.0.0.1', primary.port));
    await until('both replicas are in touch', () => hasReplica(primary.port, 2));
  };
  const storeWith = (options: Partial<RedisStoreOptions> = {}): RedisStore => {
    const client = clientOf.port(three().primary.port);
    const store = redisStore({ client, prefix: newPrefix(), waitTimeoutMs: 300, ...options });
    undo.push(() => store.close());
    return store;
  };
  const receiverOn = (store: RedisStore, required: Durability): Promise<TestReceiver> =>
    testReceiver({ store, durability: { require: required } });
  const refusal = async ({ receiver }: TestReceiver): Promise<unknown> => {
    const error: unknown = await receiver.ready().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  };

  /** Until then each answer is 503: a replica takes its time to confirm. */
  const answered200 = (at: TestReceiver, event: PayloadInput): Promise<void> =>
    until('it is answered 200', async () => (await at.deliver(event)).response.status === 200);

  /** Events that were answered after one replica had become a primary, and how many of all it does not know. */
  async function promoted(
    options: Partial<RedisStoreOptions>,
  ): Promise<{ readonly answered: number; readonly lost: number }> {
    const prefix = newPrefix();
    const store = storeWith({ prefix, ...options });
    await store.open();
    const tryOnce = async (
      n: number,
      request = acceptRequest({ key: key(n), task: `task-${n}` }),
    ): Promise<boolean> => {
      const result = await store.accept(request).catch((error: unknown) => error);
      if ((result as { kind?: string }).kind === 'won') return true;
      expect(result).toMatchObject({ code: 'not_durable' });
      return false;
    };
    for (const n of [0, 1, 2]) {
      const request = acceptRequest({ key: key(n), task: `task-${n}` });
      await until('replicas have confirmed', () => tryOnce(n, request));
    }
    await promote();
    // It is not attached any more, and the other one still is.
    const after = [3, 4, 5];
    const isAnswered = await Promise.all(after.map((n) => tryOnce(n)));
    const answered = after.filter((_, at) => isAnswered[at]).map(key);
    const judge = redisStore({ client: clientOf.port(three().replica.port), prefix, waitReplicas: 0 });
    await judge.open();
    const { sender } = acceptRequest();
    const all = [...[0, 1, 2].map(key), ...answered];
    const seen = await Promise.all(all.map((name) => judge.peek(sender, name)));
    await judge.close();
    await attach();
    return { answered: answered.length, lost: seen.filter((state) => state === 'absent').length };
  }

  it('one of which is promoted: the other confirms nothing alone, and nothing is lost', async () => {
    expect(await promoted({})).toEqual({ answered: 0, lost: 0 });
  });

  it('one of which is promoted: where one has to confirm, what it confirms is lost, so that the test can fail', async () => {
    const { answered, lost } = await promoted({ waitReplicas: 1, waitTimeoutMs: 20_000, timeoutMs: 30_000 });
    expect(answered).toBe(3);
    // Those before it may have been confirmed by the other one alone, too.
    expect(lost).toBeGreaterThanOrEqual(3);
  });

  it('are failover for a receiver that waits for both, and 503 while one is away', async () => {
    const at = await receiverOn(storeWith(), 'failover');
    await at.receiver.ready();
    const event = payloads.tool('completed');
    await answered200(at, event);
    await promote();
    expect(said(await at.deliver(event))).toBe('unavailable not_durable 503');
    await attach();
    await answered200(at, event);
  });

  it('are no failover for a receiver that waits for one of them: ConfigError with the number', async () => {
    const at = await receiverOn(storeWith({ waitReplicas: 1 }), 'failover');
    expect(await refusal(at)).toMatch(
      /waitReplicas is 1, and 2 attached.*set waitReplicas: 2, or leave it out/,
    );
  });

  it('of which one comes later than the receiver: 503 with the number, where it was fixed at one', async () => {
    await promote();
    const at = await receiverOn(storeWith({ waitReplicas: 1 }), 'failover');
    const learning = await receiverOn(storeWith(), 'failover');
    const event = payloads.tool('completed');
    await until('one is left', async () => !(await hasReplica(three().primary.port, 2)));
    await answered200(at, event);
    await answered200(learning, event);
    await attach();
    const outcome = await at.deliver(event);
    expect(said(outcome)).toBe('unavailable not_durable 503');
    expect(outcome).toMatchObject({ detail: expect.stringMatching(/set waitReplicas: 2/) });
    // By default it waits for both from the first delivery on, and for no less later.
    await answered200(learning, event);
    await promote();
    expect(said(await learning.deliver(event))).toBe('unavailable not_durable 503');
    await attach();
  });

  it('are waited for by one where the disk is all that is required', async () => {
    const at = await receiverOn(storeWith(), 'disk');
    const event = payloads.tool('completed');
    await answered200(at, event);
    await promote();
    await answered200(at, event);
    await attach();
  });

  it('that attach after the start: a receiver that was refused is not refused for ever', async () => {
    const server = await startServer({ ...ON_DISK, ...NO_DELAY });
    undo.push(server.remove);
    const at = await receiverOn(storeWith({ client: clientOf.port(server.port) }), 'failover');
    expect(await refusal(at)).toMatch(/waitReplicas is 0, and 0 attached.*attach replicas/);
    const event = payloads.tool('completed');
    expect(said(await at.deliver(event))).toBe('unavailable misconfigured 503');
    const replica = await startServer({ ...ON_DISK, ...NO_DELAY, replicaof: `127.0.0.1 ${server.port}` });
    undo.push(replica.remove);
    await until('the replica is in touch', () => hasReplica(server.port));
    await answered200(at, event);
  });
});

it.each([0, 1])(
  'waitReplicas: %i below what is attached is refused where the settings cannot be read, too',
  (asked) => {
    const barrier = barrierOf(asked);
    barrier.seen({ least: 2, most: 2 });
    expect(() => barrier.keep('failover')).toThrow(ConfigError);
    expect(() => barrier.keep('failover')).toThrow(/set waitReplicas: 2, or leave it out/);
    barrier.keep('disk');
    expect(barrier.replicas()).toBe(asked);
  },
);

it('a replica that came back counts once, and one that is silent not at all', () => {
  const line = (n: number, text: string): string => `slave${n}:ip=10.0.0.${text}\r\n`;
  const info =
    '# Replication\r\nrole:master\r\nconnected_slaves:5\r\n' +
    line(0, '1,port=6379,state=online,offset=1,lag=1') +
    line(1, '2,port=6379,state=online,offset=1,lag=9') +
    line(2, '2,port=6379,state=online,offset=9,lag=0') +
    line(3, '3,port=6379,state=wait_bgsave,offset=0,lag=0') +
    line(4, '4,port=6379,state=online,offset=1,lag=11') +
    'master_repl_offset:9\r\n';
  expect(attachedIn(info)).toBe(2);
});
