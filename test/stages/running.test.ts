import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault, type Store } from '../../src/index.ts';
import type { AliveRequest } from '../../src/stores/index.ts';
import { safeLogger } from '../../src/for-tests.ts';
import { createRunning, type Running, type RunStart } from '../../src/stages/for-tests.ts';
import { gate } from '../receiver/setup.ts';
import { onWorkerd } from '../support/workerd.ts';

const config = { leaseMs: 8_000, renewMs: 2_000, maxRunMs: 900_000 };
let beats: AliveRequest[];
let warnings: string[];

const logger = safeLogger({
  debug() {},
  info() {},
  warn: (_: object, message: string) => void warnings.push(message),
  error() {},
});
const alive: NonNullable<Store['alive']> = async (request) => void beats.push(request);

function table(store: Pick<Store, 'alive'> = { alive }): Running {
  let ids = 0;
  const newId = (): string => `id-${++ids}`;
  return createRunning({ store, config, logger, newId });
}

function begun(running: Running, deliveryId: string, suspect = false): () => void {
  return running.begin(start(deliveryId, suspect)) ?? expect.fail(`${deliveryId} was refused`);
}

const start = (deliveryId: string, suspect = false): RunStart => ({
  deliveryId,
  sender: 'https://seller.example/mcp',
  key: `key of ${deliveryId}`,
  suspect,
});

/** The store is not asked. */
const NEVER = (): never => expect.fail('asked');

beforeEach(() => {
  vi.useFakeTimers();
  beats = [];
  warnings = [];
});

afterEach(() => vi.useRealTimers());

describe('runs of this process', () => {
  it('count until the handler has settled and the store knows', () => {
    const running = table();
    const over = begun(running, 'a');
    expect([running.has('a'), running.has('b'), running.all()]).toEqual([
      true,
      false,
      [{ sender: 'https://seller.example/mcp', key: 'key of a' }],
    ]);
    expect(running.begin(start('a'))).toBeUndefined();
    over();
    expect(running.begin(start('a'))).toBeUndefined();
    over();
    expect([running.has('a'), running.all()]).toEqual([false, []]);
  });

  it('count no longer than maxRunMs, and a late end does not free the run after it', () => {
    const running = table();
    const first = begun(running, 'a');
    vi.advanceTimersByTime(899_999);
    expect(running.has('a')).toBe(true);
    vi.advanceTimersByTime(1);
    expect([running.has('a'), running.all()]).toEqual([false, []]);
    begun(running, 'a');
    first();
    first();
    expect(running.has('a')).toBe(true);
  });

  it('keep the key of the delivery of a task for as long as they count', () => {
    const running = table();
    const task = (deliveryId: string): (() => void) =>
      running.begin({ ...start(deliveryId), taskId: 't' }) ?? expect.fail(`${deliveryId} was refused`);
    const key = (): string | undefined => running.keyOf('https://seller.example/mcp', 't');
    expect(key()).toBeUndefined();
    const first = task('a');
    expect([key(), running.keyOf('https://other.example/mcp', 't')]).toEqual(['key of a', undefined]);
    first();
    expect(key()).toBe('key of a');
    first();
    expect(key()).toBeUndefined();
    const late = task('b');
    vi.advanceTimersByTime(900_000);
    expect([key(), running.all()]).toEqual([undefined, []]);
    task('b');
    late();
    late();
    expect(key()).toBe('key of b');
  });

  it('include one suspect at a time, beside others', async () => {
    const running = table();
    begun(running, 'healthy');
    const over = begun(running, 'suspect', true);
    expect([running.hasSuspect(), running.begin(start('another', true))]).toEqual([true, undefined]);
    begun(running, 'healthy too');
    expect(await running.askAlone('another', NEVER, Boolean)).toBeUndefined();
    over();
    over();
    expect(running.hasSuspect()).toBe(false);
    begun(running, 'another', true);
  });

  it('keep the place of a suspect for the one whose lease is asked for', async () => {
    const running = table();
    const { opened, open } = gate<'leased'>();
    const asked = running.askAlone('a', () => opened, Boolean);
    for (const other of ['a', 'b']) {
      expect(await running.askAlone(other, NEVER, Boolean)).toBeUndefined();
      running.release('b');
    }
    expect(running.begin(start('b', true))).toBeUndefined();
    begun(running, 'healthy');
    open('leased');
    expect(await asked).toBe('leased');
    expect(running.begin(start('b', true))).toBeUndefined();
    begun(running, 'a', true);
    running.release('a');
    expect(await running.askAlone('b', NEVER, Boolean)).toBeUndefined();
  });

  it('free that place when nothing was leased, and after a lease without news', async () => {
    const running = table();
    expect(await running.askAlone('a', async () => '', Boolean)).toBe('');
    expect(await running.askAlone('b', async () => 'leased', Boolean)).toBe('leased');
    vi.advanceTimersByTime(7_999);
    expect(running.begin(start('c', true))).toBeUndefined();
    vi.advanceTimersByTime(1);
    begun(running, 'c', true);
  });

  it('keep it for a lease where the store gave no answer: it may have leased', async () => {
    const running = table();
    const { opened, open } = gate();
    const asked = running.askAlone('a', () => opened.then(() => Promise.reject(new Error('reset'))), Boolean);
    vi.advanceTimersByTime(5_000);
    open();
    await expect(asked).rejects.toThrow('reset');
    vi.advanceTimersByTime(7_999);
    expect(await running.askAlone('b', NEVER, Boolean)).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(await running.askAlone('b', async () => 'leased', Boolean)).toBe('leased');
  });

  it('are not remembered where a request may end without notice', () => {
    onWorkerd();
    const running = table();
    begun(running, 'a', true);
    begun(running, 'a', true);
    expect([running.has('a'), running.all()]).toEqual([false, []]);
  });
});

describe('the sign of life of the process', () => {
  it('is one call for all leases that are renewed, with the same id', () => {
    const running = table();
    for (let lease = 0; lease < 3; lease += 1) running.beat();
    vi.advanceTimersByTime(1_000);
    running.beat();
    vi.advanceTimersByTime(999);
    running.beat();
    expect(beats).toEqual([1, 2].map(() => ({ process: running.process(), forMs: 6_000 })));
  });

  it('expires no later than the leases of a process that died, whenever they were renewed last', () => {
    const running = table();
    const died = 40_000;
    const renewed = [0, 1_300, 1_900].map((phase) => {
      let last = 0;
      for (let at = phase; at < died; at += config.renewMs) last = at;
      return last;
    });
    const beatAt: number[] = [];
    for (let at = 0; at < died; at += 100) {
      if (
        at % config.renewMs === 0 ||
        (at - 1_300) % config.renewMs === 0 ||
        (at - 1_900) % config.renewMs === 0
      ) {
        const before = beats.length;
        running.beat();
        if (beats.length > before) beatAt.push(at);
      }
      vi.advanceTimersByTime(100);
    }
    const rowUntil = (beatAt.at(-1) ?? 0) + (beats.at(-1)?.forMs ?? 0);
    const leasesUntil = renewed.map((at) => at + config.leaseMs);
    expect(rowUntil).toBeLessThanOrEqual(Math.min(...leasesUntil));
    // And never over under one that lives.
    const gaps = beatAt.slice(1).map((at, n) => at - (beatAt[n] ?? 0));
    expect(Math.max(...gaps)).toBeLessThan(6_000);
  });

  it('logs a warning when the store is unreachable, and is repeated', async () => {
    const away = (): Promise<void> => Promise.reject(new Fault('store_unavailable', 'away'));
    const running = table({ alive: away });
    running.beat();
    await vi.advanceTimersByTimeAsync(2_000);
    running.beat();
    await vi.advanceTimersByTimeAsync(0);
    expect(warnings).toHaveLength(2);
    await expect(running.announce()).rejects.toThrow('away');
  });

  it('is not sent to a store that keeps no processes', async () => {
    const running = table({});
    running.beat();
    await running.announce();
    expect(warnings).toEqual([]);
  });
});
