import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limited, orLate, settledWithin, sleep } from '../src/time-limits.ts';

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

describe('limited', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;

  it('holds nothing of what has ended, where a client goes on listening to the signal', async () => {
    vi.useRealTimers();
    const parent = new AbortController();
    let held: WeakRef<object> | undefined;
    await limited({ ms: 600_000, reason: 'late' }, parent.signal, async (signal) => {
      const answer = { text: 'an answer' };
      held = new WeakRef(answer);
      // As the tool transport's SDK does: it never stops.
      signal.addEventListener('abort', () => void answer.text);
    });
    // A WeakRef keeps its object until the job ends that has made or read it.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(held?.deref()).toBeUndefined();
    expect(parent.signal.aborted).toBe(false);
  });

  it('fires after its time, and with the signal that it was given, by its reason', async () => {
    const reasonOf = (signal: AbortSignal): Promise<unknown> =>
      new Promise((resolve) => void signal.addEventListener('abort', () => resolve(signal.reason)));
    const late = limited({ ms: 50, reason: 'too late' }, new AbortController().signal, reasonOf);
    await vi.advanceTimersByTimeAsync(50);
    expect(await late).toMatchObject({ message: 'too late' });
    const parent = new AbortController();
    const stopped = limited({ ms: 50, reason: 'too late' }, parent.signal, reasonOf);
    parent.abort(new Error('stopped'));
    expect(await stopped).toMatchObject({ message: 'stopped' });
  });
});
