import { fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { seenRecord } from '../inbox/setup.ts';
import { testReceiver, payloads, said, sellerKey, type TestReceiver } from '../receiver/setup.ts';
import { tempFile, type TempFile } from '../stores/sqlite-files.ts';
import { startRedis, type RedisUrl } from '../support/redis.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { dropSchemas, KINDS, type KindName, type OpenQueue, type QueueLocation } from './kinds.ts';

const RECEIVER = fileURLToPath(new URL('fixtures/enqueue-and-hang.ts', import.meta.url));
/** More than any lease: after the crash the lease of the dead process is over. */
const LATER_MS = 60_000;

let redis: RedisUrl;
let postgres = '';
let temp: TempFile;
let name = '';
let offsetMs = 0;
const schema = `queues_${randomBytes(6).toString('hex')}`;
const opened: OpenQueue[] = [];

beforeAll(async () => {
  redis = await startRedis();
  postgres = await sharedPostgres(inject('shared'));
});
afterAll(async () => {
  await redis.stop();
  await dropSchemas(postgres, schema);
});
beforeEach(() => {
  temp = tempFile();
  offsetMs = 0;
  name = `events-${randomUUID()}`;
});
afterEach(async () => {
  for (const queue of opened.splice(0)) await queue.close();
  temp.remove();
});

const placeOf = (kind: KindName): QueueLocation => ({
  url: KINDS[kind].server === 'redis' ? redis.url : postgres,
  name,
  schema,
});

async function open(kind: KindName): Promise<OpenQueue> {
  const queue = await KINDS[kind].open(placeOf(kind));
  opened.push(queue);
  return queue;
}

/** A receiver on the test's file, whose handlers enqueue. */
const setupOf = (mode: 'inline' | 'inbox', { handler }: OpenQueue): Promise<TestReceiver> =>
  testReceiver({
    store: sqliteStore(temp.file, { clockOffsetMs: () => offsetMs }),
    mode,
    worker: { pollMs: 20 },
    handler,
  });

/** A process takes the delivery, enqueues it, and is killed before it can complete the event. */
async function killAfterEnqueue(
  kind: KindName,
  mode: 'inline' | 'inbox',
  { sign }: TestReceiver,
  payload: object,
) {
  const { publicJwk } = await sellerKey();
  const given = { kind, place: placeOf(kind), file: temp.file, mode, publicJwk };
  const child = fork(RECEIVER, [JSON.stringify(given)], { serialization: 'advanced' });
  const gone = once(child, 'exit');
  expect(await once(child, 'message')).toEqual([{ ready: true }, undefined]);
  child.send(await sign(payload));
  const [{ enqueued }] = (await once(child, 'message')) as [{ enqueued: string }];
  child.kill('SIGKILL');
  expect(await gone).toEqual([null, 'SIGKILL']);
  offsetMs = LATER_MS;
  return enqueued;
}

const MODES = {
  inline: async (here: TestReceiver, payload: object) => {
    expect(said(await here.deliver(payload))).toBe('accepted 200');
  },
  inbox: async (here: TestReceiver, payload: { idempotency_key: string }) => {
    await here.receiver.start();
    await expect.poll(() => seenRecord(here, payload.idempotency_key)).toMatchObject({ state: 'applied' });
  },
} as const;

describe.each(Object.keys(KINDS) as KindName[])('%s: kill -9 between enqueue and completion', (kind) => {
  it.each(['inline', 'inbox'] as const)('mode %s: the retry finds the job waiting: one job', async (mode) => {
    const queue = await open(kind);
    const here = await setupOf(mode, queue);
    const payload = payloads.tool('completed');
    const id = await killAfterEnqueue(kind, mode, here, payload);
    expect(await queue.waiting()).toEqual([id]);

    await MODES[mode](here, payload);
    expect(await queue.waiting()).toEqual([id]);
    expect(said(await here.deliver(payload))).toBe('duplicate 200');
    await here.receiver.stop();
  });

  it.each(['inline', 'inbox'] as const)(
    'mode %s: the retry comes when the job was done and forgotten: it is not run again',
    async (mode) => {
      const queue = await open(kind);
      const here = await setupOf(mode, queue);
      const payload = payloads.tool('completed');
      const id = await killAfterEnqueue(kind, mode, here, payload);
      const runs = await queue.work(1);
      await expect.poll(() => queue.waiting()).toEqual([]);
      await queue.forget();

      await MODES[mode](here, payload);
      // A queue that took it once more would have it waiting, running or run.
      const next = payloads.tool('completed');
      await here.deliver(next);
      await expect
        .poll(() => runs.map(({ data }) => (data as { idempotencyKey: string }).idempotencyKey))
        .toEqual([payload.idempotency_key, next.idempotency_key]);
      expect(runs[0]?.id).toBe(id);
      await here.receiver.stop();
    },
  );
});
