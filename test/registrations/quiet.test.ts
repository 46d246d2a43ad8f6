import { describe, expect, it } from 'vitest';
import { isQuiet, type LeavableUrl, leftAt, quietAt } from '../../src/registrations/for-tests.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const use = { url: 'https://old.example/webhooks', recorded: 0, since: 10 * DAY };

describe('a URL is quiet (told.md §3.5)', () => {
  it('never while somebody is on it', () => {
    expect(quietAt({ ...use, recorded: 1, since: 0 })).toBe(Infinity);
    expect(isQuiet({ ...use, recorded: 1, since: 0 }, Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  it.each([
    ['a day after the last one has left', {}, 11 * DAY],
    ['the horizon that its seller declares after that', { horizonMs: 7 * DAY }, 17 * DAY],
    ['never sooner than five minutes', { horizonMs: 1 }, 10 * DAY + 5 * MINUTE],
    ['one reporting interval, where that is longer', { intervalMs: 31 * DAY }, 41 * DAY],
    ['a day, where reports come hourly', { intervalMs: HOUR }, 11 * DAY],
    ['a day after the last delivery, and what noting it takes', { heardAt: 12 * DAY }, 13 * DAY + 2 * MINUTE],
    ['not before the last one has left, whatever was heard before', { heardAt: 9 * DAY }, 11 * DAY],
    [
      'a month and a day after its credentials were used elsewhere, and what noting it takes',
      { usedAt: 12 * DAY },
      44 * DAY + 2 * MINUTE,
    ],
    [
      'a month and the horizon after that, where its seller declares one',
      { usedAt: 12 * DAY, horizonMs: 7 * DAY },
      50 * DAY + 2 * MINUTE,
    ],
    [
      'not before the last delivery was long enough ago, wherever its credentials were used before',
      { usedAt: 12 * DAY, heardAt: 60 * DAY },
      61 * DAY + 2 * MINUTE,
    ],
  ])('%s', (_is, more, at) => {
    expect(quietAt({ ...use, ...more })).toBe(at);
    expect(isQuiet({ ...use, ...more }, at - 1)).toBe(false);
    expect(isQuiet({ ...use, ...more }, at)).toBe(true);
  });
});

const former: LeavableUrl = {
  channel: 'reports',
  at: DAY,
  ackedAt: DAY,
  formerAt: 2 * DAY,
  heardAt: 3 * DAY,
};
const newer: LeavableUrl = { channel: 'reports', at: 2 * DAY - 1, ackedAt: 2 * DAY };

describe('a media buy leaves a URL (told.md §3.4)', () => {
  it.each<readonly [string, readonly LeavableUrl[], number | undefined]>([
    ['not while nothing has come by the new one', [newer], undefined],
    ['not by an event that came before the acknowledgement', [{ ...newer, heardAt: 2 * DAY - 1 }], undefined],
    ['by the first one after it', [{ ...newer, heardAt: 2 * DAY }], 2 * DAY],
    ['since the acknowledgement, however often it comes', [{ ...newer, heardAt: 9 * DAY }], 2 * DAY],
    [
      'not by an event on another channel',
      [newer, { ...newer, channel: 'push', heardAt: 3 * DAY }],
      undefined,
    ],
    [
      'not by one that was told before it',
      [newer, { ...newer, at: 0, ackedAt: 1, heardAt: 3 * DAY }],
      undefined,
    ],
    [
      'by one that took the place of the new one',
      [newer, { channel: 'reports', at: 3 * DAY, ackedAt: 3 * DAY, heardAt: 4 * DAY }],
      2 * DAY,
    ],
    [
      'not by one whose update has not ended',
      [newer, { channel: 'reports', at: DAY * 3, heardAt: DAY * 3 }],
      undefined,
    ],
  ])('%s', (_is, others, at) => {
    expect(leftAt(former, [former, ...others], {}, 5 * DAY)).toBe(at);
  });

  it('not one that nothing has replaced', () => {
    const { formerAt: _replaced, ...current } = former;
    expect(leftAt(current, [current], {}, 50 * DAY)).toBeUndefined();
  });

  it('a horizon after another one, or none, took its place', () => {
    expect(leftAt(former, [former], {}, 3 * DAY - 1)).toBeUndefined();
    expect(leftAt(former, [former], {}, 3 * DAY)).toBe(2 * DAY);
    expect(leftAt(former, [former], { horizonMs: 7 * DAY }, 3 * DAY)).toBeUndefined();
  });

  it('every one a horizon after it is terminal, former or not', () => {
    for (const one of [former, newer]) {
      const at = (horizonMs: number | undefined, now: number): number | undefined =>
        leftAt(one, [former, newer], { endedAt: 3 * DAY, horizonMs }, now);
      expect(at(undefined, 4 * DAY - 1)).toBeUndefined();
      expect(at(undefined, 4 * DAY)).toBe(3 * DAY);
      expect(at(7 * DAY, 10 * DAY - 1)).toBeUndefined();
      expect(at(7 * DAY, 10 * DAY)).toBe(3 * DAY);
    }
  });
});
