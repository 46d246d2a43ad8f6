import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Alarm } from '../../../src/index.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import {
  testReceiver,
  payloads,
  said,
  type TestReceiver,
  type TestReceiverOptions,
} from '../../receiver/setup.ts';
import { eventKey } from '../../inbox/setup.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import { ask, ON_DISK, startServer, type RedisServer } from '../../support/redis.ts';
import { clientOf } from '../redis-harness.ts';

let server: RedisServer;
let offsetMs = 0;
const receivers: TestReceiver[] = [];

beforeEach(async () => {
  server = await startServer(ON_DISK);
  offsetMs = 0;
});
afterEach(async () => {
  for (const { receiver } of receivers.splice(0)) await receiver.stop();
  await server.remove();
});

async function opened(options: TestReceiverOptions = {}): Promise<TestReceiver> {
  const store = redisStore({
    client: clientOf.port(server.port),
    clockOffsetMs: () => offsetMs,
    timeoutMs: PATIENT_MS,
  });
  const made = await testReceiver({ store, ...options });
  receivers.push(made);
  return made;
}

const event = (n: number): object =>
  payloads.tool('completed', { idempotency_key: eventKey(n), task_id: `task-${n}` });
const made = (alarms: readonly Alarm[]): readonly Alarm[] =>
  alarms.filter(({ code }) => code === 'store_created');
const flush = (): Promise<unknown> => ask(server.port, (redis) => redis.flushall());

it('a store emptied at run time raises one alarm with both identities, and events are still accepted', async () => {
  const { receiver, deliver, alarms } = await opened();
  const { storeId } = await receiver.ready();
  await deliver(event(1));
  expect(made(alarms)).toHaveLength(1);
  await flush();
  offsetMs += 10_000;
  expect(said(await deliver(event(1)))).toBe('accepted 200');
  await deliver(event(2));
  offsetMs += 10_000;
  await deliver(event(3));
  const [, second, ...more] = made(alarms);
  expect(second?.message).toContain(`its identity was ${storeId} and is `);
  expect(more).toEqual([]);
  const after = await ask(server.port, (redis) =>
    redis.mget('webhook:{registry}:id', 'webhook:{registry}:v'),
  );
  expect(after).toEqual([second?.storeId, '4']);
  expect((await receiver.ready()).storeId).toBe(second?.storeId);
  expect(made(alarms)).toHaveLength(2);
});

it('a store emptied at run time is 503 misconfigured with expectStoreId, until the expected store is back', async () => {
  const { storeId = '' } = await (await opened()).receiver.ready();
  const { receiver, deliver } = await opened({ expectStoreId: storeId });
  await receiver.ready();
  expect(said(await deliver(event(1)))).toBe('accepted 200');
  await flush();
  offsetMs += 10_000;
  for (const n of [2, 3]) {
    expect(said(await deliver(event(n)))).toBe('unavailable misconfigured 503');
  }
  await ask(server.port, (redis) => redis.set('webhook:{registry}:id', storeId));
  expect(said(await deliver(event(2)))).toBe('accepted 200');
});
