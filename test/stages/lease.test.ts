import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault } from '../../src/index.ts';
import type { RenewRequest } from '../../src/stores/index.ts';
import {
  type DeadlineExceeded,
  endWatch,
  type RunEnd,
  stopWatch,
  type Watch,
  type WatchRequest,
  watchRun,
} from '../../src/stages/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const EVENT = { sender: 'https://seller.example/mcp', key: 'event', owner: 'me' };
const LEASE = { ...EVENT, leaseMs: 8000 };
beforeEach(() => void vi.useFakeTimers());

afterEach(() => void vi.useRealTimers());

describe('the lease of a run', () => {
  let asked: RenewRequest[];
  let beats: number;
  let watch: Watch;
  let ended: string | undefined;
  let closing: AbortController;

  function keep(renew: () => Promise<'renewed' | 'lost'>, maxRunMs = 900_000): void {
    const store = {
      renew: (request: RenewRequest) => {
        asked.push(request);
        return renew();
      },
    };
    const beat = (): void => {
      beats += 1;
    };
    // Its handler never settles, and has no deadline.
    watch = watchRun({
      store,
      complete: EVENT,
      config: { leaseMs: 8000, renewMs: 2000, maxRunMs, handlerDeadlineMs: Infinity },
      log: SILENT_LOGGER,
      closed: closing.signal,
      beat,
      began: performance.now(),
      abort: new AbortController(),
      givenUp() {},
      tell: ({ kind }) => (ended = kind),
    });
  }

  beforeEach(() => {
    asked = [];
    beats = 0;
    closing = new AbortController();
    ended = undefined;
  });

  afterEach(() => {
    stopWatch(watch);
  });

  it('renews no more once the receiver has stopped', async () => {
    keep(async () => 'renewed');
    await vi.advanceTimersByTimeAsync(4_000);
    closing.abort();
    await vi.advanceTimersByTimeAsync(20_000);
    expect([asked.length, vi.getTimerCount(), ended]).toEqual([2, 0, undefined]);
  });

  it('renews every renewMs, until it is stopped', async () => {
    keep(async () => 'renewed');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(asked).toEqual(Array.from({ length: 10 }, () => LEASE));
    stopWatch(watch);
    await vi.advanceTimersByTimeAsync(20_000);
    expect([asked.length, ended]).toEqual([10, undefined]);
  });

  it('sends the sign of life of the process with', async () => {
    keep(async () => 'renewed');
    await vi.advanceTimersByTimeAsync(7999);
    expect([asked.length, beats]).toEqual([3, 3]);
  });

  it('ends as lost when the store says so', async () => {
    keep(async () => 'lost');
    await vi.advanceTimersByTimeAsync(2000);
    expect(ended).toBe('lost');
  });

  it('repeats a failed renewal: the lease still holds', async () => {
    let failing = true;
    keep(() => {
      failing = !failing;
      return failing ? Promise.resolve('renewed') : Promise.reject(new Fault('store_unavailable', 'away'));
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ended).toBeUndefined();
  });

  it('goes on asking a store that fails for longer than a lease, and follows its answer', async () => {
    let answer: () => Promise<'renewed' | 'lost'> = () =>
      Promise.reject(new Fault('store_unavailable', 'away'));
    keep(() => answer());
    await vi.advanceTimersByTimeAsync(40_000);
    expect([asked.length, ended]).toEqual([20, undefined]);
    answer = async () => 'renewed';
    await vi.advanceTimersByTimeAsync(2000);
    expect([asked.length, ended]).toEqual([21, undefined]);
    answer = async () => 'lost';
    await vi.advanceTimersByTimeAsync(2000);
    expect(ended).toBe('lost');
  });

  it('asks a store that does not answer once, for as long as a run may take', async () => {
    keep(() => new Promise<never>(() => {}), 60_000);
    await vi.advanceTimersByTimeAsync(59_999);
    expect([asked.length, ended]).toEqual([1, undefined]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBe('abandoned');
  });

  it('ends as abandoned when maxRunMs is over', async () => {
    keep(async () => 'renewed', 10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ended).toBe('abandoned');
  });
});

describe('watchRun', () => {
  let abort: AbortController;
  let given: Fault[];
  let told: (RunEnd | DeadlineExceeded)[];

  /** @param ranMs how long the run had been under way when it was watched. */
  function request(ranMs = 0): WatchRequest {
    const store = { renew: async (): Promise<'renewed'> => 'renewed' };
    const config = { leaseMs: 8_000, renewMs: 2_000, maxRunMs: 900_000, handlerDeadlineMs: 8_000 };
    return {
      store,
      complete: EVENT,
      config,
      log: SILENT_LOGGER,
      closed: new AbortController().signal,
      beat() {},
      began: performance.now() - ranMs,
      abort,
      givenUp: (why: Fault): void => void given.push(why),
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
    abort = new AbortController();
    given = [];
    told = [];
  });

  it('leaves no timer of a run that is settled', async () => {
    const watch = watchRun(request());
    endWatch(watch, { kind: 'returned' });
    expect(told).toEqual([{ kind: 'returned' }]);
    stopWatch(watch);
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('tells the handler nothing of a lease that is lost once the run is settled', async () => {
    const last = request();
    const answer = Promise.withResolvers<'lost'>();
    const store = { renew: () => answer.promise };
    const watch = watchRun({ ...last, store });
    await vi.advanceTimersByTimeAsync(2_000);
    endWatch(watch, { kind: 'returned' });
    stopWatch(watch);
    answer.resolve('lost');
    await vi.advanceTimersByTimeAsync(0);
    expect([abort.signal.aborted, given, told]).toEqual([false, [], [{ kind: 'returned' }]]);
  });

  it('renews the lease of a run that has ended and is not settled', async () => {
    const watch = watchRun(request());
    endWatch(watch, { kind: 'returned' });
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(1);
    stopWatch(watch);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts the deadline from the beginning of the run', async () => {
    const watch = watchRun(request());
    await vi.advanceTimersByTimeAsync(7_999);
    expect([told, abort.signal.aborted]).toEqual([[], false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(abort.signal.aborted).toBe(true);
    endWatch(watch, { kind: 'returned' });
    // Told once; how it ended is what the overrun carries.
    expect(told).toEqual([{ kind: 'overrun', finished: expect.any(Promise) as unknown }]);
    expect(await finished()).toEqual({ kind: 'returned' });
    stopWatch(watch);
  });

  it('counts the deadline from when the run began, not from when it was watched', async () => {
    watchRun(request(5_000));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toMatchObject([{ kind: 'overrun' }]);
  });

  it('ends the run on a lost lease, and its transaction for the same reason as its signal', async () => {
    const lost = request();
    const store = { renew: async (): Promise<'lost'> => 'lost' };
    const watch = watchRun({ ...lost, store });
    await vi.advanceTimersByTimeAsync(2_000);
    // The handler may end after it.
    endWatch(watch, { kind: 'returned' });
    expect(told).toEqual([{ kind: 'lost' }]);
    expect(given).toEqual([expect.objectContaining({ code: 'lease_lost' })]);
    expect(abort.signal.reason).toBe(given[0]);
  });

  it('abandons a run over maxRunMs, whose deadline passed before', async () => {
    watchRun(request());
    await vi.advanceTimersByTimeAsync(900_000);
    expect(await finished()).toEqual({ kind: 'abandoned' });
    expect(given).toEqual([expect.objectContaining({ code: 'handler_timeout' })]);
    expect(abort.signal.reason).toMatchObject({ message: 'the handler ran over 8000 ms' });
  });
});
