import { describe, it } from 'vitest';
import { describeStoreContract, type StoreHarness } from '../../../src/testing/index.ts';
import { storeOf } from '../../../src/stores/index.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';

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
});
