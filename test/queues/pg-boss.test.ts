import { randomBytes, randomUUID } from 'node:crypto';
import { PgBoss } from 'pg-boss';
import PgBoss10 from 'pg-boss10';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enqueue, type EnqueueOptions } from '../../src/queues/pg-boss.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import {
  gate,
  testReceiver,
  payloads,
  said,
  type TestReceiver,
  type TestReceiverOptions,
} from '../receiver/setup.ts';
import { ownSchema, TAKE_OVER } from '../stores/postgres-schemas.ts';
import { startServer } from '../support/postgres.ts';
import { dropSchemas, type BossClass } from './kinds.ts';

const CLASSES = {
  'pg-boss 12': { Boss: PgBoss as unknown as BossClass, major: 12 },
  'pg-boss 10': { Boss: PgBoss10 as unknown as BossClass, major: 10 },
} as const;
const PREFIX = `boss_${randomBytes(6).toString('hex')}`;

const at = ownSchema();
afterAll(() => dropSchemas(at.url, PREFIX));

type Its = InstanceType<BossClass>;

async function started(Boss: BossClass, connectionString: string, schema: string): Promise<Its> {
  const boss = new Boss({ connectionString, schema, supervise: false, schedule: false, max: 3 });
  boss.on('error', () => undefined);
  await boss.start();
  return boss;
}

/** The same, with one method of its own. */
function withMember(boss: Its, member: keyof Its, own: (...args: unknown[]) => Promise<unknown>): Its {
  return new Proxy(boss, {
    get: (target, name) => {
      if (name === member) return own;
      const value: unknown = Reflect.get(target, name);
      // Version 12 has private members, which a proxy has not.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The same; something happens between the look at its queue and each `send`. */
function beforeSend(boss: Its, happens: () => Promise<void>): Its {
  return withMember(boss, 'send', async (...args) => {
    await happens();
    return boss.send(...(args as Parameters<typeof boss.send>));
  });
}

/** A setup whose handler is `enqueue`, and what it threw. */
async function enqueuing(
  boss: Its,
  queue: string,
  options: EnqueueOptions<object> = {},
  more: TestReceiverOptions = {},
): Promise<TestReceiver & { readonly errors: Error[] }> {
  const errors: Error[] = [];
  const handler = enqueue(boss, queue, options);
  const here = await testReceiver({
    handler: async (event, ctx) => {
      try {
        await handler(event, ctx);
      } catch (error) {
        errors.push(error as Error);
        throw error;
      }
    },
    ...more,
  });
  return { ...here, errors };
}

describe.each(Object.keys(CLASSES) as (keyof typeof CLASSES)[])('enqueue, %s', (version) => {
  const { Boss, major } = CLASSES[version];
  const schema = `${PREFIX}_${major}`;
  let boss: Its;
  beforeAll(async () => {
    boss = await started(Boss, at.url, schema);
  });
  afterAll(() => boss.stop({ graceful: false }));

  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await boss.getDb().executeSql(text, values)).rows as Record<string, unknown>[];
  const jobs = (queue: string): Promise<Record<string, unknown>[]> =>
    sql(`SELECT id, state, data, priority FROM ${schema}.job WHERE name = $1`, [queue]);

  async function newQueue(options: object = {}): Promise<string> {
    const queue = `events-${randomUUID()}`;
    await boss.createQueue(queue, { name: queue, ...options } as never);
    return queue;
  }

  it('a job has the deliveryId as its id, and the event as its data', async () => {
    const queue = await newQueue();
    const here = await enqueuing(boss, queue, { jobOptions: { priority: 7 } });
    const payload = payloads.tool('completed', { operation_id: 'op-1', not_known_yet: [1, { a: null }] });
    expect(said(await here.deliver(payload))).toBe('accepted 200');
    const [seen] = here.seen;
    const data = JSON.parse(JSON.stringify(seen?.event)) as object;
    expect(await jobs(queue)).toEqual([{ id: seen?.ctx.deliveryId, state: 'created', data, priority: 7 }]);
    expect(data).toMatchObject({ envelope: payload });
  });

  it('NUL and lone surrogates, which jsonb refuses, become U+FFFD; a __proto__ stays a member', async () => {
    const queue = await newQueue();
    const here = await enqueuing(boss, queue);
    const text = JSON.stringify(payloads.tool('completed', { context: { a: 'x' }, message: 'm' })).replace(
      '"x"',
      String.raw`"1\u0000 2\ud800 3\\u0000 4\ud83d\ude00","__proto__":{"polluted":true}`,
    );
    expect(said(await here.deliver(text))).toBe('accepted 200');
    const [job] = await jobs(queue);
    const { context } = (job?.['data'] ?? {}) as { context: object };
    expect(Object.entries(context)).toContainEqual(['a', '1\uFFFD 2\uFFFD 3\\u0000 4😀']);
    expect(Object.keys(context)).toContain('__proto__');
    expect('polluted' in context).toBe(false);
  });

  it.each(major === 12 ? ['short', 'stately', 'exclusive'] : ['short', 'stately'])(
    'a queue of the policy %s drops jobs: ConfigError, 503, nothing is lost',
    async (policy) => {
      const queue = await newQueue({ policy });
      const here = await enqueuing(boss, queue);
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.name).toBe('ConfigError');
      expect(here.errors[0]?.message).toContain(`policy ${policy}`);
    },
  );

  it('the policy singleton queues every event', async () => {
    const queue = await newQueue({ policy: 'singleton' });
    const here = await enqueuing(boss, queue);
    for (const status of ['completed', 'failed'] as const) {
      expect(said(await here.deliver(payloads.tool(status)))).toBe('accepted 200');
    }
    expect(await jobs(queue)).toHaveLength(2);
  });

  it('a missing queue: ConfigError that says how to create it; then the retry is accepted', async () => {
    const queue = `events-${randomUUID()}`;
    const here = await enqueuing(boss, queue);
    const payload = payloads.tool('completed');
    expect(said(await here.deliver(payload))).toBe('unavailable handler_failed 503');
    expect(here.errors[0]?.message).toContain(`createQueue('${queue}')`);
    await boss.createQueue(queue);
    expect(said(await here.deliver(payload))).toBe('accepted 200');
    expect(await jobs(queue)).toHaveLength(1);
  });

  it('a job that was dropped is never a 2xx: 503 until there is room', async () => {
    const queue = await newQueue();
    // Behind the handler's back: it has looked at the queue.
    const behind = beforeSend(boss, async () => {
      await sql(`UPDATE ${schema}.queue SET policy = 'short' WHERE name = $1`, [queue]);
      await sql(`UPDATE ${schema}.job SET policy = 'short' WHERE name = $1`, [queue]);
    });
    const here = await enqueuing(behind, queue);
    const standard = (): Promise<unknown> =>
      sql(`UPDATE ${schema}.queue SET policy = 'standard' WHERE name = $1`, [queue]);
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('accepted 200');
    await standard();
    const payload = payloads.tool('completed');
    expect(said(await here.deliver(payload))).toBe('unavailable handler_failed 503');
    expect(here.errors[0]?.message).toContain('dropped the job');
    await sql(`UPDATE ${schema}.job SET state = 'completed', completed_on = now() WHERE name = $1`, [queue]);
    await standard();
    expect(said(await here.deliver(payload))).toBe('accepted 200');
    expect((await jobs(queue)).map(({ state }) => String(state)).toSorted()).toEqual([
      'completed',
      'created',
    ]);
  });

  it('a missing queue, a missing pg-boss or an unknown option is refused at once', () => {
    const make = enqueue as (...given: readonly unknown[]) => unknown;
    for (const given of [[], [boss], [boss, ''], ['webhooks', boss], [{ send: () => null }, 'any']]) {
      expect(() => make(...given)).toThrow(
        /give a PgBoss .* and the name of a queue: enqueue\(boss, 'webhooks'\)/,
      );
    }
    // Without a word it would be two commits.
    expect(() => make(boss, 'any', { transation: true })).toThrow(/transation is not known.*transaction/);
    expect(() => make(boss, 'any', { transaction: 'yes' })).toThrow(
      /transaction: "yes" is not true or false/,
    );
  });

  it.each(['id', 'db', 'singletonSeconds', 'singletonMinutes', 'singletonHours', 'singletonNextSlot'])(
    'jobOptions.%s is refused',
    async (name) => {
      expect(() => enqueue(boss, 'any', { jobOptions: { [name]: 1 } })).toThrow(/ConfigError|jobOptions/);
      const here = await enqueuing(boss, await newQueue(), { jobOptions: () => ({ [name]: 1 }) });
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.name).toBe('ConfigError');
    },
  );

  if (major === 12) {
    it('queues that delete jobs within 24 h after completion are refused', async () => {
      const queue = await newQueue({ deleteAfterSeconds: 3600 });
      const here = await enqueuing(boss, queue);
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.message).toContain('deleteAfterSeconds to 86400');
      for (const deleteAfterSeconds of [0, 86_400]) {
        const kept = await enqueuing(boss, queue, { jobOptions: { deleteAfterSeconds } });
        expect(said(await kept.deliver(payloads.tool('completed')))).toBe('accepted 200');
      }
    });

    it('a queue whose setting is shortened later is refused from then on', async () => {
      const queue = await newQueue();
      const here = await enqueuing(boss, queue);
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('accepted 200');
      await (boss as unknown as PgBoss).updateQueue(queue, { deleteAfterSeconds: 3600 });
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.message).toContain('deleteAfterSeconds to 86400');
    });

    it('the policy key_strict_fifo takes every event, in order by task', async () => {
      const queue = await newQueue({ policy: 'key_strict_fifo' });
      const here = await enqueuing(boss, queue, {
        jobOptions: (event) => ({ singletonKey: event.taskId ?? event.idempotencyKey }),
      });
      const first = payloads.tool('working', { timestamp: '2026-01-01T12:00:00Z' });
      const second = {
        ...payloads.tool('completed', { timestamp: '2026-01-01T12:00:01Z' }),
        task_id: first.task_id,
      };
      for (const payload of [first, second]) expect(said(await here.deliver(payload))).toBe('accepted 200');
      expect(await jobs(queue)).toHaveLength(2);
    });
  }

  describe('transaction: true', () => {
    const transaction = { transaction: true };

    it('job and completion are one commit', async () => {
      const queue = await newQueue({ ...(major === 12 && { deleteAfterSeconds: 1 }) });
      const here = await enqueuing(boss, queue, transaction, { store: at.store() });
      const payload = payloads.tool('completed');
      expect(said(await here.deliver(payload))).toBe('accepted 200');
      expect(said(await here.deliver(payload))).toBe('duplicate 200');
      expect(await jobs(queue)).toMatchObject([{ id: here.seen[0]?.ctx.deliveryId }]);
      await here.receiver.stop();
    });

    it('an owner that lost its lease adds no job', async () => {
      const queue = await newQueue();
      const stolen = withMember(boss, 'send', async (...args) => {
        const id = await boss.send(...(args as Parameters<typeof boss.send>));
        expect(id).not.toBeNull();
        await at.sql(TAKE_OVER);
        return id;
      });
      const here = await enqueuing(stolen, queue, transaction, { store: at.store() });
      expect((await here.deliver(payloads.tool('completed'))).response.status).toBe(503);
      expect(here.seen).toHaveLength(1);
      expect(await jobs(queue)).toEqual([]);
      await here.receiver.stop();
    });

    it('the deadline passes while pg-boss does not answer: 503, rolled back, and no job later', async () => {
      const queue = await newQueue();
      const [asked, answered] = [gate(), gate()];
      let late: Promise<unknown> = Promise.resolve();
      const silent = withMember(boss, 'send', (...args) => {
        asked.open();
        late = answered.opened.then(() => boss.send(...(args as Parameters<typeof boss.send>)));
        return late;
      });
      const time = new AbortController();
      const store = at.store();
      const handler = enqueue(silent, queue, transaction);
      const here = await testReceiver({
        store,
        handler: (event, ctx) => handler(event, { ...ctx, signal: time.signal }),
      });
      const payload = payloads.tool('completed');
      const first = here.deliver(payload);
      await asked.opened;
      time.abort(new Error('the time is over'));
      expect(said(await first)).toBe('unavailable handler_failed 503');
      answered.open();
      // By now the connection is somebody else's.
      await expect(late).rejects.toThrow('the time is over');
      expect(await jobs(queue)).toEqual([]);
      const well = await enqueuing(boss, queue, transaction, { store });
      expect(said(await well.deliver(payload))).toBe('accepted 200');
      expect(await jobs(queue)).toMatchObject([{ id: here.seen[0]?.ctx.deliveryId }]);
      await here.receiver.stop();
    });

    it('a job that was dropped rolls back, and is 503', async () => {
      const queue = await newQueue();
      const here = await enqueuing(boss, queue, transaction, { store: at.store() });
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('accepted 200');
      await sql(`UPDATE ${schema}.queue SET policy = 'short' WHERE name = $1`, [queue]);
      await sql(`UPDATE ${schema}.job SET policy = 'short' WHERE name = $1`, [queue]);
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.message).toContain('dropped the job');
      await here.receiver.stop();
    });

    it.each([
      ['memory', {}, /memory store has no transactions/],
      ['SQLite', { store: sqliteStore(':memory:') }, /transaction: true needs postgresStore/],
    ])('on the %s store it is a ConfigError', async (_, more, message) => {
      const here = await enqueuing(boss, await newQueue(), transaction, more);
      expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
      expect(here.errors[0]?.message).toMatch(message);
    });
  });
});

describe.each(Object.keys(CLASSES) as (keyof typeof CLASSES)[])(
  'enqueue, %s: Postgres is unavailable',
  (version) => {
    it('503 handler_failed; the retry enqueues, once', async () => {
      const server = await startServer();
      const boss = await started(CLASSES[version].Boss, server.url, 'pgboss');
      await boss.createQueue('events');
      const here = await enqueuing(boss, 'events');
      const payload = payloads.tool('completed');
      server.crash();
      expect(said(await here.deliver(payload))).toBe('unavailable handler_failed 503');
      server.start();
      await expect
        .poll(async () => said(await here.deliver(payload)))
        .toMatch(/^accepted 200|^duplicate 200/);
      const { rows } = await boss.getDb().executeSql("SELECT id FROM pgboss.job WHERE name = 'events'");
      expect(rows).toEqual([{ id: here.seen[0]?.ctx.deliveryId }]);
      await boss.stop({ graceful: false });
      server.remove();
    });
  },
);
