import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createKeyHistory } from '../../src/keys/admission-pressure.ts';

describe('key ids by the minute in which they were first seen', () => {
  test('each counts once a sender', () => {
    const history = createKeyHistory();
    expect([
      history.note('a', 'k', 0),
      history.note('a', 'k', 1),
      history.note('b', 'k', 1),
      history.note('a', 'K', 1),
    ]).toEqual([true, false, true, true]);
    expect([history.known(), history.count(0, 1), history.count(0, 2), history.count(1, 1)]).toEqual([
      3, 2, 3, 1,
    ]);
  });

  test('no two pairs are one, whatever is in their names', () => {
    const history = createKeyHistory();
    expect([history.note('a b', 'c', 0), history.note('a', 'b c', 0), history.note('a","b', 'c', 0)]).toEqual(
      [true, true, true],
    );
  });

  test('counts as a plain list of minutes would', () => {
    const steps = fc.array(fc.nat({ max: 400 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.nat({ max: 30 }), fc.nat({ max: 1440 }), (gaps, ago, minutes) => {
        const history = createKeyHistory();
        const seen: number[] = [];
        let minute = 29_000_000;
        for (const gap of gaps) {
          minute += gap;
          history.note('s', String(seen.length), minute);
          seen.push(minute);
        }
        const from = minute - ago - minutes;
        const expected = seen.filter((at) => at > from && at <= minute - ago && minute - at < 1445).length;
        expect(history.count(ago, minutes)).toBe(expected);
        expect(history.minutes()).toBe(minute - (seen[0] ?? 0));
      }),
    );
  });

  test('a clock that goes back a little changes nothing, one that goes back far starts again', () => {
    const history = createKeyHistory();
    history.note('s', 'a', 100);
    history.note('s', 'b', 95);
    expect([history.count(0, 1), history.minutes()]).toEqual([2, 0]);
    history.note('s', 'c', 10);
    expect([history.count(0, 1000), history.minutes()]).toEqual([1, 0]);
    expect(history.note('s', 'a', 11)).toBe(false);
  });

  test('what was counted before a clock went back far counts for no later minute', () => {
    const history = createKeyHistory();
    history.note('s', 'a', 1445 + 3);
    history.note('s', 'b', 3);
    expect(history.count(0, 1)).toBe(1);
  });

  test('remembers a bounded number of them', () => {
    const history = createKeyHistory();
    for (let n = 0; n <= 100_000; n += 1) history.note('s', String(n), 0);
    expect(history.known()).toBe(100_000);
    expect([history.note('s', '100000', 0), history.note('s', '0', 0)]).toEqual([false, true]);
  });
});
