import { describe, expect, it } from 'vitest';
import { keyidsOf, nonceCounts, sweepsOfAll } from '../../../src/stores/redis/for-tests.ts';

describe('the number of nonces of all senders (admission.md §8.9)', () => {
  it('is the sum of what was told last of each', () => {
    const counts = nonceCounts();
    expect(counts.seen('a', 3)).toBe(3);
    expect(counts.seen('b', 4)).toBe(7);
    expect(counts.seen('a', 2)).toBe(6);
    expect(counts.seen('b', 0)).toBe(2);
  });

  it('is published once, and read for senders that this process was not told of since', () => {
    const counts = nonceCounts();
    counts.seen('a', 3);
    expect(counts.take()).toEqual([{ sender: 'a', nonces: 3 }]);
    expect(counts.take()).toEqual([]);
    counts.seen('b', 2);
    counts.merge([
      { sender: 'a', nonces: 30 },
      { sender: 'b', nonces: 20 },
      { sender: 'c', nonces: 10 },
    ]);
    expect(counts.seen('d', 0)).toBe(42);
    // What another process has swept is told as 0.
    counts.merge([{ sender: 'c', nonces: 0 }]);
    expect(counts.seen('d', 0)).toBe(32);
  });

  it('takes a tenth of the time at most to be counted anew, where senders are many', async () => {
    let now = 0;
    let sweeps = 0;
    const sweepOf = (senders: number) => async () => {
      sweeps += 1;
      await Promise.resolve();
      now += 500;
      return { gone: 7, senders };
    };
    const run = sweepsOfAll(() => now);
    // Those that come while one runs share it.
    expect(await Promise.all([run(sweepOf(64)), run(sweepOf(64))])).toEqual([7, 7]);
    expect([await run(sweepOf(65)), sweeps]).toEqual([7, 2]);
    now += 9 * 500 - 1;
    expect([await run(sweepOf(65)), sweeps]).toEqual([0, 2]);
    now += 1;
    await expect(run(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect([await run(sweepOf(65)), sweeps]).toEqual([7, 3]);
  });
});

describe('key ids of a sender', () => {
  const HOUR_MS = 3_600_000;
  const units = (keyid: string | undefined, expiresAt: number): Parameters<typeof toNote>[0] => {
    const scope = { sender: 'a', ...(keyid !== undefined && { keyid }) };
    const row = {
      scope,
      kind: 'nonce',
      id: 'nonce',
      version: undefined,
      next: 1,
      data: '',
      expiresAt,
    } as const;
    const none = {
      body: null,
      dueAt: null,
      suspect: null,
      list: null,
      waitsFor: null,
      link: null,
      bytes: 0,
      bytesBefore: 0,
    };
    return [{ expects: [], writes: [{ ...row, ...none, before: undefined }] }];
  };
  const { toNote, noted } = keyidsOf();

  it('are recorded with the first nonce, and again an hour later', () => {
    expect(toNote(units('key', 1000))).toEqual([['key', 1000 + HOUR_MS]]);
    // Not before the script has it.
    expect(toNote(units('key', 1000))).toHaveLength(1);
    noted('a', toNote(units('key', 1000)));
    expect(toNote(units('key', 1000 + HOUR_MS))).toEqual([]);
    expect(toNote(units('key', 1001 + HOUR_MS))).toHaveLength(1);
    expect(toNote(units(undefined, 1000))).toEqual([]);
  });
});
