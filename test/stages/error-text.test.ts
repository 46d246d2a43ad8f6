import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/stages/for-tests.ts';

describe('errorText: the stored text of a failed run’s error', () => {
  it.each([
    ['an error: its message alone', new TypeError('no such media buy'), 'no such media buy'],
    ['an error without a message: its name', new RangeError(''), 'RangeError'],
    ['text', 'down', 'down'],
    ['nothing', undefined, 'undefined'],
    ['what has no text', Object.create(null), 'an error that has no text'],
    ['an error whose message is not text', Object.assign(new Error('a'), { message: 422 }), '422'],
    [
      'one whose message has no text',
      Object.assign(new Error('a'), { message: Object.create(null) }),
      'an error that has no text',
    ],
    ['NUL, which PostgreSQL cannot keep', new Error('a\0b'), 'a\uFFFDb'],
    ['half a character', new Error('a\uD83D'), 'a\uFFFD'],
  ])('%s', (_, error, text) => {
    expect(errorText(error)).toBe(text);
  });

  it('is at most 1 000 characters, and never ends in half a surrogate pair', () => {
    expect(errorText(new Error('x'.repeat(5000)))).toBe('x'.repeat(1000));
    expect(errorText(new Error('x'.repeat(999) + '\u{1F600}'))).toBe(`${'x'.repeat(999)}\uFFFD`);
  });
});
