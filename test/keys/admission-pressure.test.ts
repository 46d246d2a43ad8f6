import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AdmissionPressure, Alarm } from '../../src/index.ts';
import type { PressureState } from '../../src/index.ts';
import { createKeyHistory, createPressureGauge } from '../../src/keys/for-tests.ts';
import { MINUTE, publicJwk, setup, START, startSeller } from './setup.ts';

interface Gauge {
  readonly alarms: Alarm[];
  /** So many new key ids now. */
  readonly see: (count: number, sender?: string) => void;
  readonly advance: (minutes: number) => void;
  /** So many new key ids in each 5 minutes. */
  readonly steady: (minutes: number, each: number) => void;
  readonly tripped: () => unknown[];
  readonly state: () => PressureState;
}

function gauge(thresholds: AdmissionPressure): Gauge {
  let now = START;
  let last = 0;
  const alarms: Alarm[] = [];
  const { note, state } = createPressureGauge({
    thresholds,
    now: () => now,
    raiseAlarm: (alarm) => alarms.push(alarm),
  });
  const see: Gauge['see'] = (count, sender = 'https://s.example/') => {
    for (let n = 0; n < count; n += 1) note(sender, `k${(last += 1)}`);
  };
  const advance: Gauge['advance'] = (minutes) => {
    now += minutes * MINUTE;
  };
  return {
    alarms,
    see,
    advance,
    state,
    steady: (minutes, each) => {
      for (let passed = 0; passed < minutes; passed += 5) {
        see(each);
        advance(5);
      }
    },
    tripped: () => alarms.map((alarm) => alarm['tripped']),
  };
}

describe('ratios: new key ids in 5 minutes compared with the mean before', () => {
  test.each([
    ['shortRatio', 60],
    ['mediumRatio', 360],
    ['longRatio', 1440],
  ] as const)('%s looks back %i minutes and does not trip before they have passed', (name, back) => {
    const { steady, see, tripped, alarms } = gauge({ [name]: 3 });
    steady(back, 4);
    see(100);
    expect(tripped()).toEqual([]);
    const judged = gauge({ [name]: 3 });
    judged.steady(back + 5, 4);
    judged.see(12);
    expect(judged.tripped()).toEqual([]);
    judged.see(1);
    expect(judged.tripped()).toEqual([[name]]);
    expect(judged.alarms[0]).toMatchObject({
      count: 13,
      limits: { [name]: 12 },
      sender: 'https://s.example/',
    });
    expect(alarms).toEqual([]);
  });

  test('a mean under one counts as one: a key after a quiet day does not trip', () => {
    const { see, advance, tripped } = gauge({ shortRatio: 3, mediumRatio: 3, longRatio: 3 });
    see(1);
    advance(1500);
    see(3);
    expect(tripped()).toEqual([]);
    see(1);
    expect(tripped()).toEqual([['shortRatio', 'mediumRatio', 'longRatio']]);
  });

  test('a burst long ago is in the long mean and not in the short', () => {
    const { see, advance, steady, tripped } = gauge({ shortRatio: 3, longRatio: 3 });
    steady(60, 100);
    advance(1380);
    steady(10, 0);
    see(10);
    expect(tripped()).toEqual([['shortRatio']]);
  });
});

describe('ceiling: absolute plus a part of the key ids known before', () => {
  test('applies from 5 minutes after the start', () => {
    const { see, advance, tripped, alarms } = gauge({ ceiling: { absolute: 5, proportional: 0.1 } });
    see(50);
    advance(4);
    see(50);
    expect(tripped()).toEqual([]);
    advance(5);
    see(15);
    expect(tripped()).toEqual([]);
    see(1);
    expect(tripped()).toEqual([['ceiling']]);
    expect(alarms[0]).toMatchObject({ code: 'admission_pressure', count: 16, limits: { ceiling: 15 } });
  });

  test('can be absolute alone, or proportional alone', () => {
    for (const ceiling of [
      { absolute: 2, proportional: 0 },
      { absolute: 0, proportional: 0.2 },
    ]) {
      const { see, advance, tripped } = gauge({ ceiling });
      see(10);
      advance(10);
      see(2);
      expect(tripped()).toEqual([]);
      see(1);
      expect(tripped()).toEqual([['ceiling']]);
    }
  });
});

test('each threshold raises one alarm in 5 minutes', () => {
  const { see, advance, tripped } = gauge({ ceiling: { absolute: 1, proportional: 0 } });
  see(1);
  advance(10);
  see(50);
  advance(4);
  see(50);
  expect(tripped()).toHaveLength(1);
  advance(1);
  see(50);
  expect(tripped()).toHaveLength(2);
});

test('without a threshold key ids are counted, and no alarm is raised', () => {
  const { see, advance, steady, state, alarms } = gauge({});
  expect(state()).toEqual({ recent: 0, known: 0, ratios: {} });
  see(3);
  expect(state()).toEqual({ recent: 3, known: 3, ratios: {} });
  advance(5);
  expect(state()).toMatchObject({ recent: 0, known: 3 });
  steady(65, 4);
  see(12);
  expect(state()).toMatchObject({ recent: 12, ratios: { shortRatio: 3 } });
  advance(1440);
  expect(state()).toMatchObject({ recent: 0, ratios: { shortRatio: 0, mediumRatio: 0, longRatio: 0 } });
  expect(alarms).toEqual([]);
});

test('a key id that is known is asked for without the clock', () => {
  let asked = 0;
  const now = (): number => {
    asked += 1;
    return START;
  };
  const { note } = createPressureGauge({ thresholds: {}, now, raiseAlarm: () => undefined });
  note('s', 'k');
  for (let n = 0; n < 100; n += 1) note('s', 'k');
  expect(asked).toBe(1);
});

test('only keys of a sender count, not key ids that a caller invents, and nothing is refused', async () => {
  const { sender, publish } = await startSeller(publicJwk('a'));
  const thresholds = { ceiling: { absolute: 1, proportional: 0 } };
  const { keys, alarms, advance, now } = await setup({ thresholds });
  const find = async (keyid: string): Promise<number> =>
    (await keys.find(keyid, { senders: [sender], arrivedAt: now() })).candidates.length;
  expect(await find('a')).toBe(1);
  advance(10 * MINUTE);
  for (let n = 0; n < 50; n += 1) expect(await find(`made-up-${n}`)).toBe(0);
  expect(alarms).toEqual([]);
  publish(publicJwk('b'), publicJwk('c'));
  advance(MINUTE);
  expect([await find('b'), await find('c'), await find('c')]).toEqual([1, 1, 1]);
  expect(alarms).toMatchObject([{ code: 'admission_pressure', tripped: ['ceiling'], count: 2 }]);
});

describe('key ids by the minute in which they were first seen', () => {
  test('each counts once per sender', () => {
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

  test('distinct pairs of sender and key id stay distinct, whatever their characters', () => {
    const history = createKeyHistory();
    expect([history.note('a b', 'c', 0), history.note('a', 'b c', 0), history.note('a","b', 'c', 0)]).toEqual(
      [true, true, true],
    );
  });

  test('counts like a plain list of minutes', () => {
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

  test('a clock set back a little changes nothing, one set back far starts again', () => {
    const history = createKeyHistory();
    history.note('s', 'a', 100);
    history.note('s', 'b', 95);
    expect([history.count(0, 1), history.minutes()]).toEqual([2, 0]);
    history.note('s', 'c', 10);
    expect([history.count(0, 1000), history.minutes()]).toEqual([1, 0]);
    expect(history.note('s', 'a', 11)).toBe(false);
  });

  test('counts from before a clock was set back far do not count later', () => {
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

  test('a sender with too many, or too long ones, loses its own', () => {
    const history = createKeyHistory();
    history.note('quiet', 'k', 0);
    for (let n = 0; n <= 600; n += 1) history.note('loud', `${n}${'x'.repeat(10_000)}`, 0);
    expect(history.known()).toBeLessThan(502);
    for (let n = 0; n <= 100_000; n += 1) history.note('loud', String(n), 0);
    expect(history.known()).toBe(100_000);
    expect([history.knows('quiet', 'k'), history.knows('loud', '0')]).toEqual([true, false]);
  });
});
