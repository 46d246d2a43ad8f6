import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault } from '../../src/errors.ts';
import { keepLease, type LeaseKeeper } from '../../src/stages/watch.ts';
import type { RenewRequest } from '../../src/stores/contract.ts';

const LEASE = { sender: 'https://seller.example/mcp', key: 'event', owner: 'me', leaseMs: 8000 };
const log = { debug() {}, info() {}, warn() {}, error() {} };

let asked: RenewRequest[];
let beats: number;
let keeper: LeaseKeeper;
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
  keeper = keepLease({ ...LEASE, renewMs: 2000, maxRunMs, store, log, closed: closing.signal, beat });
  void keeper.ended.then((why) => (ended = why));
}

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  beats = 0;
  closing = new AbortController();
  ended = undefined;
});

afterEach(() => {
  keeper.stop();
  vi.useRealTimers();
});

describe('keepLease', () => {
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
    keeper.stop();
    await vi.advanceTimersByTimeAsync(20_000);
    expect([asked.length, ended]).toEqual([10, undefined]);
  });

  it('brings a beat with every renewal', async () => {
    keep(async () => 'renewed');
    await vi.advanceTimersByTimeAsync(7999);
    expect([asked.length, beats]).toEqual([3, 3]);
  });

  it('ends as lost where the store says so', async () => {
    keep(async () => 'lost');
    await vi.advanceTimersByTimeAsync(2000);
    expect(ended).toBe('lost');
  });

  it('a renewal that fails is tried again: the lease holds', async () => {
    let failing = true;
    keep(() => {
      failing = !failing;
      return failing ? Promise.resolve('renewed') : Promise.reject(new Fault('store_unavailable', 'away'));
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ended).toBeUndefined();
  });

  it('a store that refuses for longer than a lease is asked on, and what it says then counts', async () => {
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

  it('a store that does not answer is asked once, for as long as a run may take', async () => {
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
