import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Fault } from '../../src/errors.ts';
import { createNextTurn, type Waiter } from '../../src/stages/turns.ts';
import { watchRun, type DeadlineExceeded, type RunEnd, type WatchRequest } from '../../src/stages/watch.ts';
import { onWorkerd } from '../support/workerd.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

let abort: AbortController;
let given: Fault[];
let told: (RunEnd | DeadlineExceeded)[];

/** @param ranMs how long the run had been under way when it was watched. */
function request(ranMs = 0): WatchRequest {
  const store = { renew: async (): Promise<'renewed'> => 'renewed' };
  const of = { sender: 'https://seller.example/mcp', key: 'event', owner: 'me' };
  const closed = new AbortController().signal;
  const began = performance.now() - ranMs;
  const times = { leaseMs: 8_000, renewMs: 2_000, maxRunMs: 900_000 };
  const givenUp = (why: Fault): void => void given.push(why);
  return {
    lease: { ...of, ...times, store, log, closed, beat() {} },
    began,
    abort,
    handlerDeadlineMs: 8_000,
    givenUp,
    tell: (end) => void told.push(end),
  };
}

/** How a run ended that was over its deadline before. */
function finished(): Promise<RunEnd> {
  const [first] = told;
  if (first?.kind !== 'overrun') throw new Error('the run is not over its deadline');
  return first.finished;
}

beforeEach(() => {
  vi.useFakeTimers();
  abort = new AbortController();
  given = [];
  told = [];
});

afterEach(() => vi.useRealTimers());

describe('turns', () => {
  /** Notes its name when it begins, and does what it is told then. */
  const waiterOf = (name: number, begun: number[], then = (): void => {}): Waiter => ({
    place: -1,
    begin() {
      begun.push(name);
      then();
    },
  });

  it('one timer for all that wait for the next turn', async () => {
    const { wait } = createNextTurn();
    const begun: number[] = [];
    for (const at of [1, 2, 3]) wait(waiterOf(at, begun));
    expect([begun, vi.getTimerCount()]).toEqual([[], 1]);
    await vi.advanceTimersByTimeAsync(0);
    wait(waiterOf(4, begun));
    await vi.advanceTimersByTimeAsync(0);
    expect([begun, vi.getTimerCount()]).toEqual([[1, 2, 3, 4], 0]);
  });

  it('whoever leaves does not begin, and the others do, whatever order they leave in', async () => {
    const orders = [[], [0], [3], [1, 1], [0, 3], [3, 2, 1, 0], [1, 0, 2, 3]];
    for (const leaving of orders) {
      const { wait, leave } = createNextTurn();
      const begun: number[] = [];
      const waiters = [0, 1, 2, 3].map((name) => waiterOf(name, begun));
      for (const waiter of waiters) wait(waiter);
      for (const name of leaving) leave(waiters[name] ?? expect.fail());
      await vi.advanceTimersByTimeAsync(0);
      expect(begun.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3].filter((name) => !leaving.includes(name)));
      for (const waiter of waiters) leave(waiter);
    }
  });

  it('one that waits anew while a turn begins has the next one', async () => {
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

  it('nothing waits where one request may not serve another', () => {
    const begun: number[] = [];
    onWorkerd();
    const { wait, leave } = createNextTurn();
    const waiter = waiterOf(1, begun);
    wait(waiter);
    leave(waiter);
    expect([begun, vi.getTimerCount()]).toEqual([[1], 0]);
  });
});

describe('watchRun', () => {
  it('makes no timer for a run that is settled within its turn', async () => {
    const { ended, stop } = watchRun(createNextTurn(), request());
    ended({ kind: 'returned' });
    expect(told).toEqual([{ kind: 'returned' }]);
    stop();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('renews the lease of a run that has ended and is not settled', async () => {
    const { ended, stop } = watchRun(createNextTurn(), request());
    ended({ kind: 'returned' });
    await vi.advanceTimersByTimeAsync(0);
    // Renewal and `maxRunMs`, and no deadline.
    expect(vi.getTimerCount()).toBe(2);
    stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the deadline counts from the beginning of the run', async () => {
    const { ended, stop } = watchRun(createNextTurn(), request());
    await vi.advanceTimersByTimeAsync(7_999);
    expect([told, abort.signal.aborted]).toEqual([[], false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(abort.signal.aborted).toBe(true);
    ended({ kind: 'returned' });
    // Told once; how it ended is what the overrun carries.
    expect(told).toEqual([{ kind: 'overrun', finished: expect.any(Promise) as unknown }]);
    expect(await finished()).toEqual({ kind: 'returned' });
    stop();
  });

  it('the deadline counts from when the run began, not from when it was watched', async () => {
    watchRun(createNextTurn(), request(5_000));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toMatchObject([{ kind: 'overrun' }]);
  });

  it('a lease that is lost ends the run, and gives up its transaction for the same reason as its signal', async () => {
    const lost = request();
    const store = { renew: async (): Promise<'lost'> => 'lost' };
    const { ended } = watchRun(createNextTurn(), { ...lost, lease: { ...lost.lease, store } });
    await vi.advanceTimersByTimeAsync(2_000);
    // The handler may end after it.
    ended({ kind: 'returned' });
    expect(told).toEqual([{ kind: 'lost' }]);
    expect(given).toEqual([expect.objectContaining({ code: 'lease_lost' })]);
    expect(abort.signal.reason).toBe(given[0]);
  });

  it('a run over maxRunMs is given up, and its deadline was over before', async () => {
    watchRun(createNextTurn(), request());
    await vi.advanceTimersByTimeAsync(900_000);
    expect(await finished()).toEqual({ kind: 'abandoned' });
    expect(given).toEqual([expect.objectContaining({ code: 'handler_timeout' })]);
    expect(abort.signal.reason).toMatchObject({ message: 'the handler ran over 8000 ms' });
  });
});
