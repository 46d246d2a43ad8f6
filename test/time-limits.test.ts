import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { orLate, settledWithin, sleep } from '../src/for-tests.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('sleep', () => {
  it('resolves after its time', async () => {
    const slept = sleep(50).then(() => 'slept');
    await vi.advanceTimersByTimeAsync(50);
    expect(await slept).toBe('slept');
  });

  it('resolves at once when the signal fires or has fired, and leaves no timer', async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const removed = vi.spyOn(signal, 'removeEventListener');
    const sleeping = sleep(50_000, signal);
    stopping.abort();
    await sleeping;
    await sleep(50_000, signal);
    expect(vi.getTimerCount()).toBe(0);
    expect(removed).toHaveBeenCalled();
  });

  it('leaves no listener on a signal that never fires', async () => {
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')];
    const sleeping = sleep(50, signal);
    await vi.advanceTimersByTimeAsync(50);
    await sleeping;
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('settledWithin', () => {
  it.each([
    ['its time is over', () => vi.advanceTimersByTimeAsync(50)],
    ['the signal fires', async (stopping: AbortController) => stopping.abort()],
  ])('gives undefined once %s, and leaves no timer and no listener', async (_when, end) => {
    const stopping = new AbortController();
    const [added, removed] = (['addEventListener', 'removeEventListener'] as const).map((name) =>
      vi.spyOn(stopping.signal, name),
    );
    const settled = settledWithin(new Promise(() => {}), 50, stopping.signal);
    await end(stopping);
    expect(await settled).toBeUndefined();
    expect([vi.getTimerCount(), added?.mock.calls.length, removed?.mock.calls.length]).toEqual([0, 1, 1]);
  });
});

describe('orLate', () => {
  it('gives the result of the promise, and leaves no timer', async () => {
    expect(await orLate(Promise.resolve(1), 50, () => new Error('late'))).toBe(1);
    await expect(orLate(Promise.reject(new Error('no')), 50, () => new Error('late'))).rejects.toThrow('no');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('rejects when the promise takes longer', async () => {
    const late = expect(orLate(new Promise(() => {}), 50, () => new Error('late'))).rejects.toThrow('late');
    await vi.advanceTimersByTimeAsync(50);
    await late;
  });
});
