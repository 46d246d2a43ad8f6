import { describe, expect, it } from 'vitest';
import { type Told, withHeard, withTold } from '../../src/windows/for-tests.ts';

const url = (route: string, base = 'https://a.example/w'): Pick<Told, 'base' | 'route' | 'scheme'> => ({
  base,
  route,
  scheme: 'signature',
});
const MINUTE_MS = 60_000;

describe('what a media buy was told', () => {
  it('each channel has its own, and nothing is acknowledged before the end of its call', () => {
    const told = withTold([], { push: url('p'), reports: url('r') }, { at: 5 });
    expect(told).toEqual([
      { ...url('r'), channel: 'reports', at: 5 },
      { ...url('p'), channel: 'push', at: 5 },
    ]);
    expect(withTold(told, { push: url('p') }, { at: 5, ackedAt: 9 })).toEqual([
      { ...url('r'), channel: 'reports', at: 5 },
      { ...url('p'), channel: 'push', at: 5, ackedAt: 9 },
    ]);
  });

  it('a former one stays beside the one that replaces it, and is former when that is acknowledged', () => {
    const before = withTold([], { reports: url('r') }, { at: 1, ackedAt: 2 });
    const asked = withTold(before, { reports: url('r', 'https://b.example/w') }, { at: 3 });
    expect(asked.map(({ base, formerAt }) => [base, formerAt])).toEqual([
      ['https://a.example/w', undefined],
      ['https://b.example/w', undefined],
    ]);
    const done = withTold(asked, { reports: url('r', 'https://b.example/w') }, { at: 3, ackedAt: 4 });
    expect(done).toEqual([
      { ...url('r'), channel: 'reports', at: 1, ackedAt: 2, formerAt: 4 },
      { ...url('r', 'https://b.example/w'), channel: 'reports', at: 3, ackedAt: 4 },
    ]);
  });

  it('another scheme at the same URL is another one', () => {
    const before = withTold([], { push: url('p') }, { at: 1, ackedAt: 2 });
    const legacy = { ...url('p'), scheme: 'Bearer' } as const;
    expect(withTold(before, { push: legacy }, { at: 3, ackedAt: 4 })).toMatchObject([
      { scheme: 'signature', formerAt: 4 },
      { scheme: 'Bearer', ackedAt: 4 },
    ]);
  });

  it('what is taken away, or given to another, is former too', () => {
    const before = withTold([], { reports: url('r'), push: url('p') }, { at: 1, ackedAt: 2 });
    expect(withTold(before, { reports: null }, { at: 3, ackedAt: 4 })).toEqual([
      { ...url('r'), channel: 'reports', at: 1, ackedAt: 2, formerAt: 4 },
      { ...url('p'), channel: 'push', at: 1, ackedAt: 2 },
    ]);
    expect(withTold(before, { reports: null }, { at: 3 })).toHaveLength(2);
  });

  it('one that is told again is the same one; after another had its place it begins anew', () => {
    const before = withTold([], { push: url('p') }, { at: 1, ackedAt: 2 });
    expect(withTold(before, { push: url('p') }, { at: 5, ackedAt: 6 })).toEqual(before);
    const away = withTold(before, { push: url('q') }, { at: 5, ackedAt: 6 });
    expect(withTold(away, { push: url('p') }, { at: 7, ackedAt: 8 })).toEqual([
      { ...url('q'), channel: 'push', at: 5, ackedAt: 6, formerAt: 8 },
      { ...url('p'), channel: 'push', at: 7, ackedAt: 8 },
    ]);
  });

  it('of two calls under way neither replaces the other by being acknowledged late', () => {
    const both = withTold(
      withTold([], { push: url('2') }, { at: 2, ackedAt: 9 }),
      { push: url('1') },
      { at: 1, ackedAt: 10 },
    );
    expect(both.map(({ formerAt }) => formerAt)).toEqual([undefined, undefined]);
  });

  it('at most 32 are kept, the latest', () => {
    let told: readonly Told[] = [];
    for (let n = 0; n < 40; n += 1) told = withTold(told, { push: url(String(n)) }, { at: n, ackedAt: n });
    expect(told).toHaveLength(32);
    expect([told[0]?.route, told.at(-1)?.route]).toEqual(['8', '39']);
  });
});

describe('an event that came by a URL', () => {
  const told = withTold([], { push: url('p'), reports: url('p') }, { at: 1, ackedAt: 90_500 });

  it('is noted once a minute, and at the first one after the acknowledgement', () => {
    const first = withHeard(told, url('p'), 90_400);
    expect(first.map(({ heardAt }) => heardAt)).toEqual([90_400, 90_400]);
    const acked = withHeard(first, url('p'), 90_600);
    expect(acked.map(({ heardAt }) => heardAt)).toEqual([90_600, 90_600]);
    expect(withHeard(acked, url('p'), 119_999)).toBe(acked);
    expect(withHeard(acked, url('p'), 2 * MINUTE_MS)).not.toBe(acked);
  });

  it('by another URL changes nothing', () => {
    expect(withHeard(told, url('q'), 5)).toBe(told);
    expect(withHeard(told, url('p', 'https://b.example/w'), 5)).toBe(told);
  });
});
