import { expect, it } from 'vitest';
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
