import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault } from '../../src/errors.ts';
import { keepLease, type LeaseKeeper } from '../../src/stages/lease.ts';
import type { RenewRequest } from '../../src/stores/contract.ts';

const LEASE = { sender: 'https://seller.example/mcp', key: 'event', owner: 'me', leaseMs: 8000 };
const log = { debug() {}, info() {}, warn() {}, error() {} };

let asked: RenewRequest[];
let keeper: LeaseKeeper;
let ended: string | undefined;
let closing: AbortController;

function keep(renew: () => Promise<'renewed' | 'lost'>, maxRunMs = 900_000, heldSince?: number): void {
  const store = {
    renew: (request: RenewRequest) => {
      asked.push(request);
      return renew();
    },
  };
  const times = { renewMs: 2000, maxRunMs, ...(heldSince !== undefined && { heldSince }) };
  keeper = keepLease({ ...LEASE, ...times, store, log, closed: closing.signal });
  void keeper.ended.then((why) => (ended = why));
}

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
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

  it('counts from when the lease was had, and not from when renewing began', async () => {
    const unreachable = () => Promise.reject(new Fault('store_unavailable', 'down'));
    keep(unreachable, undefined, performance.now() - 6000);
    await vi.advanceTimersByTimeAsync(2000);
    expect([asked.length, ended]).toEqual([0, 'lost']);
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

  it.each([
    ['refuses', () => Promise.reject(new Fault('store_unavailable', 'away'))],
    ['does not answer', () => new Promise<never>(() => {})],
  ])('ends as lost when the store %s for as long as a lease holds', async (_, renew) => {
    keep(renew);
    await vi.advanceTimersByTimeAsync(7999);
    expect(ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBe('lost');
  });

  it('ends as abandoned when maxRunMs is over', async () => {
    keep(async () => 'renewed', 10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ended).toBe('abandoned');
  });
});
