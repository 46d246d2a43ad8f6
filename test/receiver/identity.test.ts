import { describe, expect, it } from 'vitest';
import { type Alarm, ConfigError, createReceiver, type Store } from '../../src/index.ts';
import type { StoreIdentity } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import type { TestReceiver, TestReceiverOptions } from './setup.ts';
import { testReceiver, payloads, said } from './setup.ts';

const identified = (...said: readonly StoreIdentity[]): Store => {
  let asked = 0;
  return {
    ...memoryStore(),
    name: 'identified',
    identity: async () => said[Math.min(asked++, said.length - 1)] ?? { id: 'none', isNew: false },
  };
};
const omitIdentity = (store: Store): Store =>
  Object.fromEntries(Object.entries(store).filter(([name]) => name !== 'identity')) as unknown as Store;
const created = ({ alarms }: TestReceiver): Alarm[] => alarms.filter(({ code }) => code === 'store_created');

describe('the identity of the store', () => {
  it('is returned by ready(), one for each memory state, and never new for memory', async () => {
    const state = createMemoryState();
    const [one, same, other] = await Promise.all([
      testReceiver({ state }),
      testReceiver({ state }),
      testReceiver(),
    ]);
    const ids = await Promise.all(
      [one, same, other].map(async ({ receiver }) => (await receiver.ready()).storeId),
    );
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    expect([one, same, other].flatMap(created)).toEqual([]);
  });

  it('is undefined for a store that has none', async () => {
    const store = omitIdentity(memoryStore());
    const { receiver } = await testReceiver({ store });
    expect(await receiver.ready()).toEqual({ storeId: undefined });
  });

  it('that was just made is one line at level warn and the alarm store_created', async () => {
    const lines: object[] = [];
    const none = (): void => undefined;
    const warn = (fields: object): number => lines.push(fields);
    const at = await testReceiver({
      store: identified({ id: 'store-1', isNew: true }, { id: 'store-1', isNew: false }),
      logger: { debug: none, info: none, warn, error: none },
    });
    await at.receiver.ready();
    expect(await at.receiver.ready()).toEqual({ storeId: 'store-1' });
    expect(lines).toEqual([
      { code: 'store_created', docs: 'docs/alarms.md#store_created', storeId: 'store-1' },
    ]);
    expect(created(at)).toMatchObject([
      { storeId: 'store-1', message: expect.stringMatching(/made just now/) as string },
    ]);
  });
});

describe('expectStoreId', () => {
  it('that matches changes nothing', async () => {
    const { receiver, deliver } = await testReceiver({
      store: identified({ id: 'store-1', isNew: false }),
      expectStoreId: 'store-1',
    });
    expect(await receiver.ready()).toEqual({ storeId: 'store-1' });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  });

  it('that differs makes ready() reject with both and the fix and deliveries 503, until the store is the expected one', async () => {
    const store = identified(
      { id: 'store-2', isNew: true },
      { id: 'store-2', isNew: false },
      { id: 'store-1', isNew: false },
    );
    const at = await testReceiver({ store, expectStoreId: 'store-1' });
    const error: unknown = await at.receiver.ready().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toMatch(
      /^expectStoreId: the identified store is store-2, and store-1 is expected\. Connect .*or set expectStoreId: 'store-2'/,
    );
    expect(created(at)).toHaveLength(1);
    expect(said(await at.deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(at.seen).toEqual([]);
    expect(said(await at.deliver(payloads.tool('completed')))).toBe('accepted 200');
  });

  const options = (more: TestReceiverOptions): Parameters<typeof createReceiver>[0] => ({
    publicUrl: 'https://buyer.example/hook',
    senders: [{ agentUrl: 'https://seller.example/mcp' }],
    store: memoryStore(),
    durability: { require: 'process' },
    handlers: { other: () => undefined },
    ...more,
  });

  it('on a store without identity, or not a string: ConfigError at construction', () => {
    const store = omitIdentity(memoryStore());
    expect(() => createReceiver(options({ store, expectStoreId: 'store-1' }))).toThrow(
      /^expectStoreId: the memory store has no identity/,
    );
    expect(() => createReceiver(options({ expectStoreId: '' }))).toThrow(/^expectStoreId: .*ready\(\)/);
  });
});
