import { describe, expect, test } from 'vitest';
import type { SignedDelivery } from '../../src/sender/sign.ts';
import type { Attempt, PostResult, RetryPolicy } from '../../src/testing/index.ts';
import { DEFAULT_RETRY, isFinal, untilFinal } from '../../src/testing/for-tests.ts';

const answer = (status: number, headers: Record<string, string> = {}): PostResult => ({
  outcome: status < 300 ? 'success' : 'failed',
  status,
  headers,
  body: '',
});
const TIMEOUT: PostResult = { outcome: 'timeout', headers: {}, body: '' };
const BROKEN: PostResult = { outcome: 'connection_error', headers: {}, body: '' };

const delivery: SignedDelivery = { method: 'POST', url: '', headers: {}, body: new Uint8Array() };

describe('isFinal', () => {
  test.each([200, 204, 301, 307, 400, 401, 404, 408, 409, 413, 415, 422])('is true for %i', (status) => {
    expect(isFinal(answer(status))).toBe(true);
  });

  test.each([429, 500, 502, 503, 504])('is false for %i', (status) => {
    expect(isFinal(answer(status, { 'retry-after': '3600' }))).toBe(false);
  });

  test('is false for a time-out and a broken connection', () => {
    expect([isFinal(TIMEOUT), isFinal(BROKEN)]).toEqual([false, false]);
  });

  test('is true for a 401 with Signature, false with Bearer', () => {
    expect(isFinal(answer(401, { 'www-authenticate': 'Signature error="x"' }))).toBe(true);
    expect(isFinal(answer(401, { 'www-authenticate': 'Bearer error="invalid_token"' }))).toBe(false);
  });
});

describe('untilFinal', () => {
  const { signal } = new AbortController();

  const run = async (answers: readonly PostResult[], policy: Partial<RetryPolicy> = {}) => {
    const waits: number[] = [];
    const result = await untilFinal(
      async (attempt): Promise<Attempt> => ({ attempt, delivery, ...(answers[attempt - 1] ?? TIMEOUT) }),
      { ...DEFAULT_RETRY, sleep: async (ms) => waits.push(ms), ...policy },
      signal,
    );
    return { ...result, waits, outcomes: result.attempts.map(({ status, outcome }) => status ?? outcome) };
  };

  test('retries until the first final answer', async () => {
    const result = await run([answer(503), TIMEOUT, answer(429), BROKEN, answer(200), answer(200)]);
    expect(result.outcomes).toEqual([503, 'timeout', 429, 'connection_error', 200]);
    expect(result.attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    expect(result.waits).toEqual([500, 1_000, 2_000, 4_000]);
    expect([result.delivered, result.last.status]).toEqual([true, 200]);
  });

  test('stops on a 4xx', async () => {
    const result = await run([answer(503), answer(401), answer(200)]);
    expect([result.outcomes, result.delivered]).toEqual([[503, 401], false]);
  });

  test('gives up after its attempts, within 15 s', async () => {
    const result = await run([]);
    expect([result.attempts.length, result.delivered]).toEqual([6, false]);
    expect(result.waits.reduce((sum, ms) => sum + ms)).toBeLessThanOrEqual(15_000);
    expect((await run([], { attempts: 1 })).waits).toEqual([]);
  });

  test('ends when waiting is aborted', async () => {
    const result = await run([answer(503)], { sleep: () => Promise.reject(new Error('closed')) });
    expect(result.outcomes).toEqual([503]);
  });
});
