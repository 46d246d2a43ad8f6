import { describe, expect, it } from 'vitest';
import { once } from '../src/once.ts';
import { gate } from './receiver/setup.ts';

describe.each([true, false])('once, shared: %s', (shared) => {
  it('makes the value at first use and keeps it', async () => {
    let made = 0;
    const value = once(() => (made += 1), shared);
    expect(made).toBe(0);
    expect([await value(), await value(), made]).toEqual([1, 1, 1]);
  });

  it('tries again after a failure', async () => {
    let tries = 0;
    const value = once(() => {
      tries += 1;
      if (tries === 1) throw new Error('not yet');
      return tries;
    }, shared);
    await expect(value()).rejects.toThrow('not yet');
    expect([await value(), await value()]).toEqual([2, 2]);
  });

  it('keeps undefined too', async () => {
    let made = 0;
    const value = once(() => void (made += 1), shared);
    await value();
    await value();
    expect(made).toBe(1);
  });
});

it('shared: whoever asks meanwhile waits for the attempt under way', async () => {
  const { opened, open } = gate<object>();
  let tries = 0;
  const value = once(() => {
    tries += 1;
    return opened;
  }, true);
  const [first, second] = [value(), value()];
  open({});
  expect([tries, (await first) === (await second)]).toEqual([1, true]);
  // From then on it is there at once.
  expect(value()).toBe(await first);
});

it('not shared: nobody waits for an attempt of another, and the first value made is kept', async () => {
  const attempts = [gate<string>(), gate<string>()];
  let tries = 0;
  const value = once(() => {
    tries += 1;
    return attempts[tries - 1]?.opened ?? 'late';
  }, false);
  const dead = value();
  const alive = value();
  attempts[1]?.open('second');
  expect(await alive).toBe('second');
  expect(await value()).toBe('second');
  attempts[0]?.open('first');
  expect([await dead, tries]).toEqual(['second', 2]);
});
