import { describe, expect, test } from 'vitest';
import { mismatches } from '../../src/vectors/for-tests.ts';

describe('what a vector expects of an event', () => {
  test.each([
    [
      'another kind',
      { eventKind: 'other' },
      { eventKind: 'task' },
      ['event kind: expected "other", got "task"'],
    ],
    ['another family', { family: 'impairment' }, { family: 'x' }, ['family: expected "impairment", got "x"']],
    ['no family', { family: 'impairment' }, { family: null }, ['family: expected "impairment", got null']],
    ['a family where none counts', { family: null }, { family: 'x' }, ['family: expected null, got "x"']],
    ['the same', { eventKind: 'other', family: 'x' }, { eventKind: 'other', family: 'x' }, []],
    ['one that cannot tell is not compared', { status: 200, family: 'x' }, {}, []],
  ])('%s', (_name, expected, answer, problems) => {
    expect(mismatches(expected, { status: 200, ...answer })).toEqual(problems);
  });
});
