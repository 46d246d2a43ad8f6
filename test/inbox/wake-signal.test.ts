import { describe, expect, it } from 'vitest';
import { createWakeSignal } from '../../src/for-tests.ts';

const LONG_MS = 2_147_483_647;

describe('wake signal', () => {
  it('ends a wait', async () => {
    const signal = createWakeSignal();
    const waiting = signal.wait(LONG_MS);
    signal.notify();
    await expect(waiting).resolves.toBeUndefined();
  });

  it('keeps one notification from before the wait', async () => {
    const signal = createWakeSignal();
    signal.notify();
    signal.notify();
    await signal.wait(LONG_MS);
    let over = false;
    const wait = async (): Promise<void> => {
      await signal.wait(LONG_MS);
      over = true;
    };
    const second = wait();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(over).toBe(false);
    signal.notify();
    await second;
  });

  it('ends a wait by itself without a notification', async () => {
    await expect(createWakeSignal().wait(1)).resolves.toBeUndefined();
  });
});
