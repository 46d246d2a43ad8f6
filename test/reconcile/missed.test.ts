import { describe, expect, it } from 'vitest';
import { askable, missedAgain, nextTry, stillMissed } from '../../src/reconcile/for-tests.ts';
import type { BuyStream } from '../../src/registrations/for-tests.ts';
import { type Frequency, type Runs, union } from '../../src/windows/for-tests.ts';
import { DAY_MS, HOUR_MS, streamOf } from './kit.ts';

const tried = (
  stream: BuyStream,
  runs: Runs,
  now: number,
  { frequency = 'daily', isForGood = false }: { frequency?: Frequency; isForGood?: boolean } = {},
) => missedAgain(stream, { frequency, runs, error: 'away', isForGood }, now);

describe('windows that were asked for in vain', () => {
  it.each<[Frequency, number]>([
    ['hourly', HOUR_MS / 4],
    ['daily', HOUR_MS],
    ['monthly', 6 * HOUR_MS],
  ])('%s: asked for again after %d ms, then twice as long each time, at most a day', (frequency, first) => {
    let is = tried(streamOf(), [[3, 4]], 0, { frequency });
    expect([is.fresh, is.lost]).toEqual([[[3, 4]], []]);
    let now = 0;
    for (const waitMs of [first, 2 * first, 4 * first, 8 * first, 16 * first]) {
      const most = Math.min(waitMs, DAY_MS);
      expect(nextTry(is.stream)).toBe(now + most);
      expect(askable(is.stream, frequency, [[3, 4]], now + most - 1)).toEqual([]);
      now += most;
      expect(askable(is.stream, frequency, [[3, 4]], now)).toEqual([[3, 4]]);
      is = tried(is.stream, [[3, 4]], now, { frequency });
      expect([is.fresh, is.lost]).toEqual([[], []]);
    }
    expect(is.stream.missed).toMatchObject([{ tries: 6, since: 0, error: 'away' }]);
  });

  it('another frequency, and other windows, are asked for meanwhile', () => {
    const { stream } = tried(streamOf(), [[3, 5]], 0);
    expect(askable(stream, 'daily', [[1, 9]], 1)).toEqual([
      [1, 3],
      [5, 9],
    ]);
    expect(askable(stream, 'hourly', [[3, 5]], 1)).toEqual([[3, 5]]);
    expect(nextTry(streamOf())).toBe(Infinity);
  });

  it('after seven days they are given up, and kept as lost', () => {
    const first = tried(streamOf(), [[3, 5]], 0);
    const last = tried(first.stream, [[3, 4]], 7 * DAY_MS);
    expect([last.fresh, last.lost]).toEqual([[], [[3, 4]]]);
    expect(last.stream.lost).toEqual({ daily: [3, 4] });
    expect(last.stream.missed).toMatchObject([{ first: 4, end: 5, tries: 1 }]);
    const more = tried(last.stream, [[4, 5]], 8 * DAY_MS);
    expect(more.stream.lost).toEqual({ daily: [3, 5] });
    expect(more.stream.missed).toEqual([]);
  });

  it('for good they are given up at once', () => {
    const { stream, fresh, lost } = tried(streamOf(), [[3, 5]], 0, { isForGood: true });
    expect([fresh, lost, stream.missed, stream.lost]).toEqual([[], [[3, 5]], [], { daily: [3, 5] }]);
  });

  it('one that is asked for beside older ones has its own seven days, and is new', () => {
    let { stream } = tried(streamOf(), [[0, 1]], 0);
    for (let day = 1; day <= 7; day += 1) {
      const is = tried(stream, [[0, day + 1]], day * DAY_MS);
      expect(is.fresh).toEqual([[day, day + 1]]);
      expect(is.lost).toEqual(day === 7 ? [[0, 1]] : []);
      stream = is.stream;
    }
    expect(stream.missed.map(({ first, tries }) => [first, tries])).toEqual(
      [1, 2, 3, 4, 5, 6, 7].map((first) => [first, 8 - first]),
    );
  });

  it('hours of a seller that is away for days are a few entries', () => {
    let { stream } = tried(streamOf(), [[0, 1]], 0, { frequency: 'hourly' });
    for (let hour = 1; hour < 5 * 24; hour += 1) {
      const runs = askable(stream, 'hourly', [[0, hour + 1]], hour * HOUR_MS);
      stream = tried(stream, runs, hour * HOUR_MS, { frequency: 'hourly' }).stream;
    }
    expect(stream.missed.length).toBeLessThan(40);
    const listed = stream.missed.reduce<Runs>((all, { first, end }) => union(all, [[first, end]]), []);
    expect(listed).toEqual([[0, 5 * 24]]);
  });

  it('windows that were tried together are parted where one of them comes', () => {
    const { stream } = tried(streamOf(), [[3, 6]], 0);
    const left = stillMissed(stream, () => [
      [2, 4],
      [5, 6],
    ]);
    expect(left.map(({ first, end }) => [first, end])).toEqual([
      [3, 4],
      [5, 6],
    ]);
    expect(stillMissed(stream, () => [])).toEqual([]);
    // The parts go on by themselves.
    const again = tried({ ...stream, missed: left }, [[5, 6]], HOUR_MS);
    expect(again.stream.missed).toMatchObject([
      { first: 3, end: 4, tries: 1 },
      { first: 5, end: 6, tries: 2, since: 0 },
    ]);
  });
});
