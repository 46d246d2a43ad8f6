import { expect, it } from 'vitest';
import { retryAfterMs } from '../../src/codec/for-tests.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');

it.each([
  ['0', 0],
  ['120', 120_000],
  ['9'.repeat(40), Number.MAX_SAFE_INTEGER],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['Sunday, 01-Mar-26 12:00:30 GMT', 30_000],
  ['Sun, 01 Mar 2026 11:59:00 GMT', 0],
  ['soon', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['', undefined],
  ['2026', 2_026_000],
  ['Sun, never', undefined],
  [null, undefined],
  // Dates to the runtime, but not of RFC 9110.
  ['on Sun, 01 Mar 2026 12:00:30 GMT', undefined],
  ['sun, 01 Mar 2026 12:00:30 GMT', undefined],
  ['Su, 01 Mar 2026 12:00:30 GMT', undefined],
  ['Sun 01 Mar 2026 12:00:30 GMT', undefined],
  ['2026-03-01T12:00:30Z', undefined],
  ['120 s', undefined],
  ['in 120', undefined],
])('Retry-After: %s', (value, ms) => {
  expect(retryAfterMs(value, NOW)).toBe(ms);
});
