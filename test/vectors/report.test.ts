import { describe, expect, test } from 'vitest';
import { compareBases } from '../../src/vectors/for-tests.ts';
import { formatReport, formatResult, type VectorResult } from '../../src/vectors/index.ts';

const passed: VectorResult = {
  name: 'one',
  kind: 'hmac',
  file: 'hmac.json',
  passed: true,
  expected: '200',
  actual: '200',
};
const failed: VectorResult = { ...passed, name: 'two', passed: false, actual: '401', detail: 'a\nb' };

describe('report', () => {
  test('has one line per vector, the reason of a failure, and a summary', () => {
    expect(formatReport([passed, failed])).toBe(
      [
        'ok   hmac one',
        'FAIL hmac two',
        '    file     hmac.json',
        '    expected 200',
        '    actual   401',
        '    a',
        '    b',
        '1 passed, 1 failed',
      ].join('\n'),
    );
  });

  test('lists failures only', () => {
    expect(formatReport([passed], { failuresOnly: true })).toBe('1 passed, 0 failed');
  });

  test('escapes what a vector has for the terminal', () => {
    const result = {
      ...failed,
      name: 'a\nb\u001B[2J',
      actual: '401 \u001B[31mred\u0007',
      detail: 'c\n\u009Bd',
    };
    const text = formatResult(result);
    expect(text.split('\n')[0]).toBe('FAIL hmac a b?[2J');
    expect(text).toContain('actual   401 ?[31mred?');
    expect(text).toContain('    c\n    ?d');
  });

  test('has colours only on request', () => {
    expect(formatResult(passed)).not.toContain('\u001B');
    expect(formatResult(passed, { colour: true })).toBe('\u001B[32mok  \u001B[0m hmac one');
    expect(formatResult(failed, { colour: true })).toContain('\u001B[31mFAIL\u001B[0m');
  });
});

describe('comparison of two signature bases', () => {
  test('that are the same', () => {
    expect(compareBases('a\nb', 'a\nb')).toBeUndefined();
  });

  test('that differ in one line: the first byte is marked', () => {
    expect(compareBases('"a": 1\n"é": xyz\n"c": 3', '"a": 1\n"é": xaz\n"c": 3')?.split('\n')).toEqual([
      'signature base: first difference at byte 14 (line 2, column 7)',
      '           | "a": 1',
      '  expected | "é": xyz',
      '  actual   | "é": xaz',
      '                   ^',
      '           | "c": 3',
    ]);
  });

  test.each([
    ['a line too few', 'a\nb', 'a', 1],
    ['a line too many', 'a', 'a\nb', 1],
    ['a line feed at the end', 'a', 'a\n', 1],
    ['another first byte', 'a', 'b', 0],
    ['nothing', '', 'b', 0],
  ])('that differ by %s', (_, expected, actual, byte) => {
    const text = compareBases(expected, actual) ?? '';
    expect(text).toContain(`first difference at byte ${byte} `);
    expect(text).toMatch(/^ +\^$/m);
  });

  test('of which one could not be built', () => {
    expect(compareBases('a\nb', undefined)).toBe(
      'signature base: none could be built\n  expected | a\n  expected | b',
    );
  });
});
