import { describe, expect, it } from 'vitest';
import { createBell } from '../../src/inbox/bell.ts';

const LONG_MS = 2_147_483_647;

describe('bell', () => {
  it('ends a wait', async () => {
    const bell = createBell();
    const waiting = bell.wait(LONG_MS);
    bell.ring();
    await expect(waiting).resolves.toBeUndefined();
  });

  it('a ring before the wait is not lost, and counts for one', async () => {
    const bell = createBell();
    bell.ring();
    bell.ring();
    await bell.wait(LONG_MS);
    let over = false;
    const wait = async (): Promise<void> => {
      await bell.wait(LONG_MS);
      over = true;
    };
    const second = wait();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(over).toBe(false);
    bell.ring();
    await second;
  });

  it('without a ring a wait ends by itself', async () => {
    await expect(createBell().wait(1)).resolves.toBeUndefined();
  });
});
