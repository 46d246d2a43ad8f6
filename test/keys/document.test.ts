import { describe, expect, test } from 'vitest';
import { backOffMs, isWithin, lifetimeMs, refreshAfterMs } from '../../src/keys/for-tests.ts';

const MINUTE = 60_000;

describe('Cache-Control is honoured within [60 s, 30 min]', () => {
  test.each([
    ['max-age=600', 10 * MINUTE],
    ['public, max-age="600"', 10 * MINUTE],
    ['PUBLIC, MAX-AGE=600', 10 * MINUTE],
    ['max-age=5', MINUTE],
    ['max-age=86400', 30 * MINUTE],
    ['max-age=9999999999', 30 * MINUTE],
    ['no-store', MINUTE],
    ['max-age=600, no-cache', MINUTE],
    ['no-store, max-age=600', MINUTE],
    ['no-cache="set-cookie", max-age=600', MINUTE],
    ['no-storefront, max-age=600', 10 * MINUTE],
    ['s-maxage=600', 5 * MINUTE],
    ['max-age=-1', 5 * MINUTE],
    ['nonsense', 5 * MINUTE],
  ])('%s', (control, ms) => {
    expect(lifetimeMs(new Headers({ 'cache-control': control }))).toBe(ms);
  });

  test('absent: five minutes', () => {
    expect(lifetimeMs(new Headers())).toBe(5 * MINUTE);
  });

  test('the Age of a shared cache is subtracted (RFC 9111 §5.1)', () => {
    expect(lifetimeMs(new Headers({ 'cache-control': 'max-age=600', age: '300' }))).toBe(5 * MINUTE);
    expect(lifetimeMs(new Headers({ 'cache-control': 'max-age=600', age: '900' }))).toBe(MINUTE);
    expect(lifetimeMs(new Headers({ 'cache-control': 'max-age=600', age: 'old' }))).toBe(10 * MINUTE);
  });
});

test('a kind of document may have rules of its own', () => {
  const rules = { minMs: MINUTE, maxMs: 60 * MINUTE, defaultMs: 60 * MINUTE };
  expect(lifetimeMs(new Headers(), rules)).toBe(60 * MINUTE);
  expect(lifetimeMs(new Headers({ 'cache-control': 'max-age=2400' }), rules)).toBe(40 * MINUTE);
  expect(lifetimeMs(new Headers({ 'cache-control': 'max-age=86400' }), rules)).toBe(60 * MINUTE);
  expect(lifetimeMs(new Headers({ 'cache-control': 'no-store' }), rules)).toBe(MINUTE);
});

test('a background refresh is due by 80 % of the life, at a random moment', () => {
  expect(refreshAfterMs(1000, () => 0)).toBeCloseTo(720);
  expect(refreshAfterMs(1000, () => 0.5)).toBeCloseTo(760);
  expect(refreshAfterMs(1000, () => 0.999_999)).toBeLessThanOrEqual(800);
});

test('failures are cached for 1 s at first and at most 60 s', () => {
  expect([1, 2, 3, 6, 7, 8, 5000].map((count) => backOffMs(count))).toEqual([
    1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000,
  ]);
});

test('a clock that was set back does not prolong a span', () => {
  expect(isWithin(1000, 1000, 30)).toBe(true);
  expect(isWithin(1029, 1000, 30)).toBe(true);
  expect(isWithin(1030, 1000, 30)).toBe(false);
  expect(isWithin(999, 1000, 30)).toBe(false);
});
