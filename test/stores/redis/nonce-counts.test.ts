import { describe, expect, it } from 'vitest';
import { keyidsOf, type NonceCounts, nonceCounts } from '../../../src/stores/redis/for-tests.ts';

const at = (nonces: number, now = 1000, untilMs = 361_000): Parameters<NonceCounts['seen']>[1] => ({
  nonces,
  now,
  untilMs,
});

describe('the number of nonces of all senders (verification.md §2.9a)', () => {
  it('is that of other senders and the script’s last count', () => {
    const counts = nonceCounts();
    expect(counts.seen('a', at(3))).toBe(3);
    expect(counts.seen('b', at(4))).toBe(7);
    expect(counts.seen('a', at(2))).toBe(6);
  });

  it('is unknown where the script was not asked, without forgetting earlier counts', () => {
    const counts = nonceCounts();
    counts.seen('a', at(3));
    expect(counts.seen('a', { nonces: undefined, now: 1000, untilMs: 361_000 })).toBe(undefined);
    expect(counts.seen('b', at(1))).toBe(4);
  });

  it('is zero once they have expired', () => {
    const counts = nonceCounts();
    counts.seen('a', at(3));
    expect(counts.seen('b', at(1, 361_000, 0))).toBe(1);
  });

  it('is published once and read for senders that this process has not seen', () => {
    const counts = nonceCounts();
    counts.seen('a', at(3));
    expect(counts.take()).toEqual([{ sender: 'a', nonces: 3, untilMs: 361_000 }]);
    expect(counts.take()).toEqual([]);
    counts.seen('b', at(2));
    counts.merge([
      { sender: 'a', nonces: 30, untilMs: 361_000 },
      { sender: 'b', nonces: 20, untilMs: 361_000 },
      { sender: 'c', nonces: 10, untilMs: 361_000 },
    ]);
    expect(counts.seen('d', at(0))).toBe(42);
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
