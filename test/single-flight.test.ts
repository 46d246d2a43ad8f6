import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { once, processTimer, requestsMayShare, singleFlight } from '../src/for-tests.ts';
import { gate } from './receiver/setup.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

const WORKERD = { userAgent: 'Cloudflare-Workers' };

it('requests share work, but not on workerd', () => {
  expect(requestsMayShare()).toBe(true);
  vi.stubGlobal('navigator', WORKERD);
  expect(requestsMayShare()).toBe(false);
  vi.stubGlobal('navigator', undefined);
  expect(requestsMayShare()).toBe(true);
});

it.each([
  ['elsewhere', undefined, 1],
  ['on workerd none is set', WORKERD, 0],
])('a timer of the process, %s', (_name, navigator, runs) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  vi.stubGlobal('navigator', navigator);
  let ran = 0;
  const cancelled = processTimer(() => (ran += 10), 60_000);
  processTimer(() => (ran += 1), 60_000);
  cancelled();
  vi.advanceTimersByTime(60_000);
  expect([ran, vi.getTimerCount()]).toEqual([runs, 0]);
});

describe('one run serves all callers of one key', () => {
  it.each([
    ['elsewhere', undefined, 1],
    ['on workerd each caller runs its own', WORKERD, 2],
  ])('%s', async (_name, navigator, runs) => {
    vi.stubGlobal('navigator', navigator);
    const { opened, open } = gate<string>();
    const running = new Map<string, Promise<string>>();
    let count = 0;
    const work = (): Promise<string> => {
      count += 1;
      return opened;
    };
    const both = Promise.all([singleFlight(running, 'a', work), singleFlight(running, 'a', work)]);
    open('done');
    expect([await both, count, running.size]).toEqual([['done', 'done'], runs, 0]);
    await singleFlight(running, 'a', work);
    expect(count).toBe(runs + 1);
  });

  it('another key has its own run, and a failed run is over', async () => {
    const running = new Map<string, Promise<string>>();
    const failing = singleFlight(running, 'a', () => Promise.reject(new Error('failed')));
    const other = singleFlight(running, 'b', () => Promise.resolve('b'));
    await expect(failing).rejects.toThrow('failed');
    expect([await other, running.size]).toEqual(['b', 0]);
  });
});

describe.each([undefined, WORKERD])('a value made once, navigator: %o', (navigator) => {
  beforeEach(() => {
    vi.stubGlobal('navigator', navigator);
  });

  it('makes the value at first use and keeps it', async () => {
    let made = 0;
    const value = once(() => (made += 1));
    expect(made).toBe(0);
    expect([await value(), await value(), made]).toEqual([1, 1, 1]);
  });

  it('tries again after a failure', async () => {
    let tries = 0;
    const value = once(() => {
      tries += 1;
      if (tries === 1) throw new Error('not yet');
      return tries;
    });
    await expect(value()).rejects.toThrow('not yet');
    expect([await value(), await value()]).toEqual([2, 2]);
  });

  it('keeps undefined too', async () => {
    let made = 0;
    const value = once(() => void (made += 1));
    await value();
    await value();
    expect(made).toBe(1);
  });
});

it('shares the attempt with concurrent callers', async () => {
  const { opened, open } = gate<object>();
  let tries = 0;
  const value = once(() => {
    tries += 1;
    return opened;
  });
  const [first, second] = [value(), value()];
  open({});
  expect([tries, (await first) === (await second)]).toEqual([1, true]);
  expect([await value(), tries]).toEqual([await first, 1]);
});

it('on workerd each caller makes its own attempt, and the first value is kept', async () => {
  vi.stubGlobal('navigator', WORKERD);
  const attempts = [gate<string>(), gate<string>()];
  let tries = 0;
  const value = once(() => {
    tries += 1;
    return attempts[tries - 1]?.opened ?? 'late';
  });
  const dead = value();
  const alive = value();
  attempts[1]?.open('second');
  expect(await alive).toBe('second');
  expect(await value()).toBe('second');
  attempts[0]?.open('first');
  expect([await dead, tries]).toEqual(['second', 2]);
});
