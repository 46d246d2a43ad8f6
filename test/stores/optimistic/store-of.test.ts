import { describe, expect, it } from 'vitest';
import { describeStoreContract, type StoreHarness } from '../../../src/testing/index.ts';
import { storeOf } from '../../../src/stores/index.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import { acceptRequest, key, RETENTION_MS } from '../requests.ts';

async function harness(): Promise<StoreHarness> {
  const kept = keptRows();
  let offsetMs = 0;
  const options = { clockOffsetMs: () => offsetMs, random: Math.random };
  const handle = () =>
    storeOf(
      rowBackend(kept, () => Date.now() + offsetMs),
      options,
    );
  return {
    a: handle(),
    b: handle(),
    setClockOffsetMs: (ms) => {
      offsetMs = ms;
    },
    reopen: async () => {
      const store = handle();
      await store.open();
      return store;
    },
    cleanup: async () => {},
  };
}

describe('storeOf', () => {
  describeStoreContract(harness, { describe, it, persistent: true, inbox: true, registrations: true });

  it('gives an event once where the clock is set back while a worker looks', async () => {
    let offsetMs = 0;
    const backend = rowBackend(keptRows(), () => Date.now() + offsetMs);
    const store = storeOf(
      {
        ...backend,
        commit: async (request) => {
          const result = await backend.commit(request);
          if (request.units.some(({ writes }) => writes.some(({ list }) => list === 'leased')))
            offsetMs -= 86_400_000;
          return result;
        },
      },
      { clockOffsetMs: () => offsetMs, random: Math.random },
    );
    await store.open();
    for (const n of [1, 2]) await store.accept({ ...acceptRequest({ key: key(n) }), mode: 'inbox' });
    const { events } = await store.inbox.lease({
      owner: 'worker',
      max: 10,
      leaseMs: 8000,
      senders: [],
      retry: { attempts: 12, crashes: 5 },
      retentionMs: RETENTION_MS,
    });
    expect(events.map((event) => event.key)).toEqual([key(1), key(2)]);
    await store.close();
  });
});
