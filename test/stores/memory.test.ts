import { describe, expect, it } from 'vitest';
import { describeStoreContract, type StoreHarness } from '../../src/testing/index.ts';
import { createMemoryState, memoryStore } from '../../src/stores/memory.ts';
import { acceptRequest } from './requests.ts';

async function harness(): Promise<StoreHarness> {
  const state = createMemoryState();
  let offsetMs = 0;
  const options = { state, clockOffsetMs: () => offsetMs };
  return {
    a: memoryStore(options),
    b: memoryStore(options),
    setClockOffsetMs: (ms) => {
      offsetMs = ms;
    },
    reopen: async () => memoryStore(options),
    cleanup: async () => {},
  };
}

describe('memoryStore', () => {
  describeStoreContract(harness, { describe, it, persistent: true, inbox: true, registrations: true });

  it('has durability process', async () => {
    expect(await memoryStore().durability()).toBe('process');
  });

  it('keeps stores without a shared state apart', async () => {
    const request = acceptRequest();
    expect((await memoryStore().accept(request)).kind).toBe('won');
    expect((await memoryStore().accept(request)).kind).toBe('won');
  });

  it('forgets expired entries of every map', async () => {
    const state = createMemoryState();
    let offsetMs = 0;
    const store = memoryStore({ state, clockOffsetMs: () => offsetMs });
    for (let n = 0; n < 100; n += 1) {
      const request = acceptRequest({ key: `event-${n}-of-the-seller`, task: `t${n}` });
      await store.accept(request);
    }
    const sender = state.senders.get(acceptRequest().sender);
    expect([sender?.records.byKey.size, sender?.tasks.byKey.size, state.allNonces]).toEqual([100, 100, 100]);
    expect([state.expiry.length, state.nonceExpiry.length]).toEqual([200, 100]);
    offsetMs = 31 * 86_400_000;
    for (let n = 0; n < 100; n += 1) await store.accept(acceptRequest({ key: 'the-same-event-again' }));
    expect([sender?.records.byKey.size, sender?.tasks.byKey.size]).toEqual([1, 0]);
    expect(sender?.nonces.get('seller-2026')?.rows.byKey.size).toBe(100);
    expect(state.allNonces).toBe(100);
    expect([state.expiry.length, state.nonceExpiry.length]).toEqual([1, 100]);
  });
});
