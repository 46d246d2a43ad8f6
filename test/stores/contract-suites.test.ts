import { expect, it } from 'vitest';
import { memoryStore } from '../../src/stores/memory.ts';
import { describeStoreContract } from '../../src/testing/index.ts';
import { canDiffer, suitesOfContract } from './contract-suites.ts';

it('a list of suites that can differ names suites of the contract alone', () => {
  const suites = suitesOfContract({ inbox: true });
  expect(suites.get('keyspaces')).toBeGreaterThan(0);
  const differs = canDiffer(suites, { keyspaces: 'a reason' });
  expect([...suites.keys()].filter(differs)).toEqual(['keyspaces']);
  expect(() => canDiffer(suites, { 'no suite': 'a reason' })).toThrow(
    'no suite of the contract is named no suite',
  );
});

it('two handles that are not open on one store fail the contract (admission.md §8.2)', async () => {
  const cases: (() => Promise<void>)[] = [];
  const apart = async () => {
    let offsetMs = 0;
    const options = { clockOffsetMs: () => offsetMs };
    return {
      a: memoryStore(options),
      b: memoryStore(options),
      setClockOffsetMs: (ms: number) => void (offsetMs = ms),
      cleanup: async () => undefined,
    };
  };
  describeStoreContract(apart, {
    describe: (name, body) => {
      if (name === 'leases: complete, fail, renew') body();
    },
    it: (_name, body) => cases.push(body),
  });
  const results = await Promise.allSettled(cases.map((run) => run()));
  expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
});
