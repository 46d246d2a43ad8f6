import { describe, expect, it } from 'vitest';
import { type Facts, type FinalState, judge, KEPT, type Owed, type Place } from './judge.ts';
import type { Line } from './ledger.ts';

const effect = (key: string, copy = 'copy 1'): Line => ({ what: 'effect', key, copy, pid: 1 });
const told = (key: string, owner: string): Line => ({ what: 'told', key, owner, pid: 1 });
const event = (key: string, more: Partial<Owed> = {}): Owed => ({
  name: key,
  keys: [key],
  state: 'applied',
  ...more,
});
const places = (...list: [string, number][]): ReadonlyMap<string, Place> =>
  new Map(list.map(([key, at]) => [key, { task: 'task', at }]));

/** One event, acknowledged, handled and completed. */
const HANDLED: Facts = {
  owed: [event('report')],
  completions: [{ key: 'report', owner: 'a' }],
  ledger: [effect('report'), told('report', 'a')],
  effects: [],
};
const verdictOf = (facts: Partial<Facts>): object => judge({ ...HANDLED, ...facts });

describe('the judge', () => {
  it('finds nothing when the promise was kept', () => {
    expect(verdictOf({})).toEqual(KEPT);
    // Handlers may run again.
    expect(verdictOf({ ledger: [effect('report'), effect('report')] })).toEqual(KEPT);
    const inTransaction = { ledger: [told('report', 'a')], effects: [{ key: 'report', copy: 'copy 1' }] };
    expect(verdictOf(inTransaction)).toEqual(KEPT);
  });

  it.each<FinalState>(['queued', 'leased', 'dead', 'stale', 'absent'])(
    'calls an event lost that ends %s, unless it is excused',
    (state) => {
      const none = { completions: [], ledger: [] };
      expect(verdictOf({ ...none, owed: [event('report', { state })] })).toEqual({
        ...KEPT,
        lost: ['report'],
      });
      expect(verdictOf({ ...none, owed: [event('report', { state, isExcused: true })] })).toEqual(KEPT);
    },
  );

  it('calls one lost that was completed and is not applied in the end', () => {
    expect(verdictOf({ owed: [event('report', { state: 'dead' })] })).toEqual({ ...KEPT, lost: ['report'] });
  });

  it('calls one lost that was completed but never handled, also where it is excused', () => {
    const facts = { ledger: [told('report', 'a')] };
    expect(verdictOf(facts)).toEqual({ ...KEPT, lost: ['report'] });
    const owed = [event('report', { isExcused: true })];
    expect(verdictOf({ ...facts, owed })).toEqual({ ...KEPT, lost: ['report'] });
  });

  it('accepts a stale status only after a newer one was completed', () => {
    const facts = {
      owed: [event('older', { state: 'stale' })],
      places: places(['older', 1], ['newer', 2]),
      ledger: [effect('newer')],
    };
    expect(verdictOf({ ...facts, completions: [{ key: 'newer', owner: 'a' }] })).toEqual(KEPT);
    expect(verdictOf({ ...facts, completions: [] })).toEqual({ ...KEPT, lost: ['older'] });
  });

  it('sees two completions: in the database, by two owners, or of two events of one thing', () => {
    const twice = { ...KEPT, completedTwice: ['report'] };
    const completions = [...HANDLED.completions, { key: 'report', owner: 'b' }];
    expect(verdictOf({ completions })).toEqual(twice);
    expect(verdictOf({ ledger: [...HANDLED.ledger, told('report', 'b')] })).toEqual(twice);
    expect(verdictOf({ ledger: [...HANDLED.ledger, told('report', 'a')] })).toEqual(KEPT);
    const owed = [{ name: 'order', keys: ['report', 'by a poll'] }];
    expect(verdictOf({ owed })).toEqual(KEPT);
    const both = [...HANDLED.completions, { key: 'by a poll', owner: 'b' }];
    expect(verdictOf({ owed, completions: both })).toEqual({ ...KEPT, completedTwice: ['order'] });
  });

  it('sees an effect of a transaction twice, and one of what was never completed', () => {
    const row = { key: 'report', copy: 'copy 1' };
    expect(verdictOf({ effects: [row, row] })).toEqual({ ...KEPT, effectsTwice: ['report'] });
    const never = { owed: [event('report', { isExcused: true })], completions: [], effects: [row] };
    expect(verdictOf(never)).toEqual({ ...KEPT, effectsTwice: ['report'] });
    const owed = [{ name: 'order', keys: ['report', 'by a poll'] }];
    const other = { ...row, key: 'by a poll' };
    expect(verdictOf({ owed, effects: [row, other] })).toEqual({ ...KEPT, effectsTwice: ['order'] });
  });

  it('sees a status that was completed after a later one, and one twice', () => {
    const facts = {
      owed: [event('older'), event('newer')],
      places: places(['older', 1], ['newer', 2], ['newer, by a poll', 2]),
      ledger: [effect('older'), effect('newer')],
    };
    const [first, last] = [
      { key: 'older', owner: 'a' },
      { key: 'newer', owner: 'b' },
    ];
    expect(verdictOf({ ...facts, completions: [first, last] })).toEqual(KEPT);
    const back = { ...KEPT, backwards: ['task'] };
    expect(verdictOf({ ...facts, completions: [last, first] })).toEqual(back);
    const again = { key: 'newer, by a poll', owner: 'c' };
    expect(verdictOf({ ...facts, completions: [first, last, again] })).toEqual(back);
  });

  it('sees that two runs were handed two copies', () => {
    const ledger = [effect('report'), effect('report', 'copy 2')];
    expect(verdictOf({ ledger })).toEqual({ ...KEPT, otherCopy: ['report'] });
  });
});
