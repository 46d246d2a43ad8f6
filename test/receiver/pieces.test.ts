import { expect, test } from 'vitest';
import { createPieces } from '../../src/for-tests.ts';

const byte = (value: number): Uint8Array => Uint8Array.of(value);
const filled = (size: number, value: number): Uint8Array => new Uint8Array(size).fill(value);

const joined = (pieces: readonly Uint8Array[]): readonly number[] => pieces.flatMap((piece) => [...piece]);

/** What is kept alive by them, whatever is looked at of it. */
const memory = (pieces: readonly Uint8Array[]): number =>
  [...new Set(pieces.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);

test('100,000 chunks of one byte become 26 blocks with at most 4 KiB of overhead', () => {
  const pieces = createPieces();
  for (let i = 0; i < 100_000; i += 1) pieces.add(byte(i % 251));
  const kept = pieces.take();
  expect(kept).toHaveLength(26);
  expect(memory(kept)).toBeLessThanOrEqual(100_000 + 4096);
  expect(joined(kept)).toEqual(Array.from({ length: 100_000 }, (_, i) => i % 251));
});

test('empty chunks are dropped', () => {
  const pieces = createPieces();
  for (let i = 0; i < 1000; i += 1) pieces.add(new Uint8Array(0));
  pieces.add(byte(1));
  for (let i = 0; i < 1000; i += 1) pieces.add(new Uint8Array(0));
  expect(pieces.take()).toEqual([byte(1)]);
});

test('small and large chunks in turn keep their order; small ones share a block', () => {
  const pieces = createPieces();
  const chunks = Array.from({ length: 50 }, (_, i) => [filled(3, i), filled(4096, 200), filled(7, i)]).flat();
  for (const chunk of chunks) pieces.add(chunk);
  const kept = pieces.take();
  expect(joined(kept)).toEqual(joined(chunks));
  expect(kept.length).toBeLessThanOrEqual(101);
  expect(memory(kept)).toBeLessThanOrEqual(50 * 4096 + 3 + 4096);
});

test('a single chunk is kept without a copy', () => {
  const chunk = byte(1);
  const pieces = createPieces();
  pieces.add(chunk);
  expect(pieces.take()[0]).toBe(chunk);
});
