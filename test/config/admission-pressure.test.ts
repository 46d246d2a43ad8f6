import { describe, expect, test } from 'vitest';
import { pressureThresholds } from '../../src/config/for-tests.ts';
import type { AdmissionPressure } from '../../src/index.ts';

describe('admissionPressure', () => {
  test.each([
    [undefined, {}],
    [{}, {}],
    [{ shortRatio: 1 }, { shortRatio: 1 }],
    [
      { mediumRatio: 2.5, longRatio: 10, ceiling: { absolute: 0, proportional: 0.1 } },
      { mediumRatio: 2.5, longRatio: 10, ceiling: { absolute: 0, proportional: 0.1 } },
    ],
  ])('%j is taken', (given, expected) => {
    expect(pressureThresholds(given)).toEqual(expected);
  });

  test.each([
    ['a number', 5],
    ['an unknown threshold', { shortratio: 2 }],
    ['a ratio under one', { shortRatio: 0.5 }],
    ['a ratio that is not a number', { mediumRatio: '2' }],
    ['a ratio without end', { longRatio: Number.POSITIVE_INFINITY }],
    ['a ceiling that is a number', { ceiling: 20 }],
    ['half a ceiling', { ceiling: { absolute: 20 } }],
    ['a negative ceiling', { ceiling: { absolute: -1, proportional: 0 } }],
    ['an unknown part of the ceiling', { ceiling: { absolute: 1, proportional: 0, relative: 1 } }],
  ])('%s is a ConfigError', (_what, given) => {
    expect(() => pressureThresholds(given as unknown as AdmissionPressure)).toThrow(
      expect.objectContaining({ code: 'config_error' }),
    );
  });

  test('a number that is a text is shown as one', () => {
    const given = { mediumRatio: '2' } as unknown as AdmissionPressure;
    expect(() => pressureThresholds(given)).toThrow(
      'advanced.admissionPressure.mediumRatio: "2" is a string, not a number of at least 1.',
    );
  });

  test('an unknown threshold is named with the option that holds it', () => {
    const given = { shortratio: 2 } as unknown as AdmissionPressure;
    expect(() => pressureThresholds(given)).toThrow(/^advanced\.admissionPressure\b.*shortratio/);
  });

  test('is a copy of the given object', () => {
    const given = { ceiling: { absolute: 1, proportional: 0 } };
    const taken = pressureThresholds(given);
    given.ceiling.absolute = 5;
    expect(taken).toEqual({ ceiling: { absolute: 1, proportional: 0 } });
  });
});
