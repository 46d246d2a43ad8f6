import { expect, it } from 'vitest';
import { type Durability, Fault, type Store } from '../../src/index.ts';
import type { LeaseDueRequest, LeaseDueResult } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { testReceiver, payloads, said } from './setup.ts';

/** A store whose durability the test lowers, told by the member or by rejecting. */
function lowerable(): {
  store: Store;
  kept: Durability[];
  lower: (message: string) => void;
  weak: { is: boolean };
} {
  const kept: Durability[] = [];
  const weak = { is: false };
  let tell: (message: string) => void = () => undefined;
  const memory = memoryStore();
  const leaseOf = async (request: LeaseDueRequest): Promise<LeaseDueResult> =>
    (await memory.inbox?.lease(request)) ?? refuse();
  const refuse = async (): Promise<never> => {
    throw new Fault('not_durable', 'its disk keeps nothing');
  };
  return {
    store: {
      ...memory,
      name: 'lowerable',
      durability: async () => 'failover',
      keepDurability: (required, lowered) => {
        kept.push(required);
        tell = lowered;
      },
      accept: (request) => (weak.is ? refuse() : memory.accept(request)),
      inbox: {
        ...memory.inbox,
        lease: (request: LeaseDueRequest) => (weak.is ? refuse() : leaseOf(request)),
      } as NonNullable<Store['inbox']>,
    },
    kept,
    lower: (message) => tell(message),
    weak,
  };
}

it('the store gets the required durability; a lowered setting it reports is an alarm and changes no answer', async () => {
  const { store, kept, lower } = lowerable();
  const { deliver, alarms, receiver } = await testReceiver({ store, durability: { require: 'disk' } });
  await receiver.ready();
  expect(kept).toEqual(['disk']);
  lower('no standby any more');
  lower('no standby any more');
  expect(alarms).toEqual([{ code: 'durability_lowered', message: 'no standby any more' }]);
  expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  await receiver.stop();
});

it('not_durable is 503 and the alarm in a receiver', async () => {
  const { store, weak } = lowerable();
  const { deliver, alarms, receiver } = await testReceiver({ store });
  await receiver.ready();
  weak.is = true;
  expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable not_durable 503');
  expect(alarms).toMatchObject([{ code: 'durability_lowered', message: 'its disk keeps nothing' }]);
  await receiver.stop();
});

it('not_durable is the alarm in a process with a worker only', async () => {
  const { store, weak } = lowerable();
  const { alarms, receiver } = await testReceiver({ store, mode: 'inbox', worker: { pollMs: 20 } });
  weak.is = true;
  await receiver.start();
  await expect.poll(() => alarms.map(({ code }) => code)).toEqual(['durability_lowered']);
  await receiver.stop();
});
