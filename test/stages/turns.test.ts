import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createNextTurn, type Waiter } from '../../src/stages/for-tests.ts';
import { onWorkerd } from '../support/workerd.ts';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => void vi.useRealTimers());

describe('turns', () => {
  /** Notes its name when it begins, and does what it is told then. */
  const waiterOf = (name: number, begun: number[], then = (): void => {}): Waiter => ({
    begin() {
      begun.push(name);
      then();
    },
  });

  it('uses one timer for all that wait for the next turn', async () => {
    const { wait } = createNextTurn();
    const begun: number[] = [];
    for (const at of [1, 2, 3]) wait(waiterOf(at, begun));
    expect([begun, vi.getTimerCount()]).toEqual([[], 1]);
    await vi.advanceTimersByTimeAsync(0);
    wait(waiterOf(4, begun));
    await vi.advanceTimersByTimeAsync(0);
    expect([begun, vi.getTimerCount()]).toEqual([[1, 2, 3, 4], 0]);
  });

  it('does not run a waiter that leaves, and runs the others', async () => {
    const { wait, leave } = createNextTurn();
    const begun: number[] = [];
    const waiters = [0, 1, 2, 3].map((name) => waiterOf(name, begun));
    for (const waiter of waiters) wait(waiter);
    for (const waiter of waiters.slice(1, 3)) leave(waiter);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual([0, 3]);
  });

  it('uses one timer for waiters that leave one after the other', async () => {
    const { wait, leave } = createNextTurn();
    for (const name of [0, 1, 2]) {
      const waiter = waiterOf(name, []);
      wait(waiter);
      leave(waiter);
    }
    expect(vi.getTimerCount()).toBe(1);
  });

  it('runs a waiter that is added during a turn in the next one', async () => {
    const { wait, leave } = createNextTurn();
    const begun: number[] = [];
    const second = waiterOf(2, begun);
    const third = waiterOf(3, begun);
    wait(
      waiterOf(1, begun, () => {
        wait(third);
        // Its turn has come already.
        leave(second);
      }),
    );
    wait(second);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun.slice(0, 2)).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(1);
    expect([begun, vi.getTimerCount()]).toEqual([[1, 2, 3], 0]);
  });

  it('runs at once where one request may not serve another', () => {
    const begun: number[] = [];
    onWorkerd();
    const { wait, leave } = createNextTurn();
    const waiter = waiterOf(1, begun);
    wait(waiter);
    leave(waiter);
    expect([begun, vi.getTimerCount()]).toEqual([[1], 0]);
  });
});
