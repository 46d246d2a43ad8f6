import { describe, expect, it } from 'vitest';
import { printableName, sanitizedName } from '../../src/codec/for-tests.ts';

describe('names in logs (verification.md §2.30)', () => {
  it.each(['', 'idempotency_key', 'a b', 'naïve', '日本語', '😀'])('keeps %j', (name) => {
    expect(printableName(name)).toBe(name);
  });

  it.each([
    ['C0', '\u0000'],
    ['a line feed', '\n'],
    ['ESC', '\u001b'],
    ['DEL', '\u007f'],
    ['C1', '\u0085'],
    ['the last of C1', '\u009f'],
    ['Arabic letter mark', '\u061c'],
    ['left-to-right mark', '\u200e'],
    ['right-to-left override', '\u202e'],
    ['an isolate', '\u2066'],
    ['pop isolate', '\u2069'],
    ['zero-width space', '\u200b'],
    ['zero-width joiner', '\u200d'],
    ['word joiner', '\u2060'],
    ['line separator', '\u2028'],
    ['paragraph separator', '\u2029'],
    ['BOM', '\ufeff'],
    ['a lone surrogate', '\ud800'],
  ])('cuts at %s', (_name, character) => {
    expect(printableName(`ab${character}cd`)).toBe('ab');
    expect(printableName(`${character}cd`)).toBe('');
  });

  it.each([
    ['am\u202Ex', '<sanitized:2>'],
    ['\u0000', '<sanitized:0>'],
    ['é€\u{1F600}\u2028', '<sanitized:9>'],
    [`${'x'.repeat(100)}\n`, '<sanitized:100>'],
    ['x'.repeat(100), 'x'.repeat(32)],
    ['a\uD800', '<sanitized:1>'],
    ['status', 'status'],
  ])('a name that stands twice in a body, %j, is written as the profile asks', (name, written) => {
    expect(sanitizedName(name)).toBe(written);
  });

  it('cuts at 32 bytes, on a code-point boundary', () => {
    expect(printableName('a'.repeat(32))).toBe('a'.repeat(32));
    expect(printableName('a'.repeat(33))).toBe('a'.repeat(32));
    expect(printableName(`${'a'.repeat(31)}é`)).toBe('a'.repeat(31));
    expect(printableName(`${'a'.repeat(30)}€`)).toBe('a'.repeat(30));
    expect(printableName('😀'.repeat(9))).toBe('😀'.repeat(8));
    expect(printableName(`${'a'.repeat(29)}😀`)).toBe('a'.repeat(29));
  });
});
