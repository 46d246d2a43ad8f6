import { describe, expect, it } from 'vitest';
import type { FinalState } from '../processes/ground.ts';
import type { Line } from '../processes/ledger.ts';
import { judge, type Facts } from './judge.ts';
import type { Planned } from './traffic.ts';

const report: Planned = { key: 'report', inTransaction: false, payload: () => ({}) };
const older: Planned = { ...report, key: 'older', task: { id: 'task', at: 1 } };
const newer: Planned = { ...report, key: 'newer', task: { id: 'task', at: 2 } };

const effect = (key: string, copy = 'copy 1'): Line => ({ what: 'effect', key, copy, pid: 1 });
const told = (key: string, owner: string): Line => ({ what: 'told', key, owner, pid: 1 });
const states = (...list: [string, FinalState][]): ReadonlyMap<string, FinalState> => new Map(list);

/** One report, acknowledged, handled and completed. */
const KEPT: Facts = {
  events: [report],
  acknowledged: new Set(['report']),
  states: states(['report', 'applied']),
  completions: [{ key: 'report', owner: 'a' }],
  ledger: [effect('report'), told('report', 'a')],
  effects: [],
};
const NOTHING = { lost: [], completedTwice: [], effectsTwice: [], backwards: [], otherCopy: [] };
const verdictOf = (facts: Partial<Facts>): object => judge({ ...KEPT, ...facts });

describe('the checker', () => {
  it('finds nothing when the promise was kept', () => {
    expect(verdictOf({})).toEqual(NOTHING);
    expect(verdictOf({ ledger: [effect('report'), effect('report')] })).toEqual(NOTHING);
    const inTransaction = { ledger: [told('report', 'a')], effects: [{ key: 'report', copy: 'copy 1' }] };
    expect(verdictOf(inTransaction)).toEqual(NOTHING);
  });

  it.each(['queued', 'leased', 'dead', 'stale', 'absent'] as const)(
    'reports an acknowledged event that ends %s as lost',
    (state) => {
      const facts = { states: states(['report', state]), completions: [] };
      expect(verdictOf(facts)).toEqual({ ...NOTHING, lost: ['report'] });
      expect(verdictOf({ ...facts, acknowledged: new Set<string>() })).toEqual(NOTHING);
    },
  );

  it('reports one that was completed but never handled as lost', () => {
    expect(verdictOf({ ledger: [told('report', 'a')] })).toEqual({ ...NOTHING, lost: ['report'] });
  });

  it('accepts a stale status only after a newer one was completed', () => {
    const facts = {
      events: [older, newer],
      acknowledged: new Set(['older']),
      states: states(['older', 'stale'], ['newer', 'applied']),
      ledger: [effect('newer')],
    };
    expect(verdictOf({ ...facts, completions: [{ key: 'newer', owner: 'a' }] })).toEqual(NOTHING);
    expect(verdictOf({ ...facts, completions: [] })).toEqual({ ...NOTHING, lost: ['older'] });
  });

  it('sees two completions, in the database or by two owners', () => {
    const twice = { ...NOTHING, completedTwice: ['report'] };
    const completions = [...KEPT.completions, { key: 'report', owner: 'b' }];
    expect(verdictOf({ completions })).toEqual(twice);
    expect(verdictOf({ ledger: [...KEPT.ledger, told('report', 'b')] })).toEqual(twice);
    expect(verdictOf({ ledger: [...KEPT.ledger, told('report', 'a')] })).toEqual(NOTHING);
  });

  it('sees an effect of a transaction twice, and one of what was never completed', () => {
    const row = { key: 'report', copy: 'copy 1' };
    expect(verdictOf({ effects: [row, row] })).toEqual({ ...NOTHING, effectsTwice: ['report'] });
    const never = { acknowledged: new Set<string>(), completions: [], effects: [row] };
    expect(verdictOf(never)).toEqual({ ...NOTHING, effectsTwice: ['report'] });
  });

  it('sees a status that was completed after a newer one', () => {
    const facts = {
      events: [older, newer],
      acknowledged: new Set(['older', 'newer']),
      states: states(['older', 'applied'], ['newer', 'applied']),
      ledger: [effect('older'), effect('newer')],
    };
    const [first, last] = [
      { key: 'older', owner: 'a' },
      { key: 'newer', owner: 'b' },
    ];
    expect(verdictOf({ ...facts, completions: [first, last] })).toEqual(NOTHING);
    const backwards = { ...facts, completions: [last, first] };
    expect(verdictOf(backwards)).toEqual({ ...NOTHING, backwards: ['older'] });
  });

  it('sees that two runs were handed two copies', () => {
    const ledger = [effect('report'), effect('report', 'copy 2')];
    expect(verdictOf({ ledger })).toEqual({ ...NOTHING, otherCopy: ['report'] });
  });
});
