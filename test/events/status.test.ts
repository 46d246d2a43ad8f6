import { describe, expect, it } from 'vitest';
import { isTerminal, normaliseState, taskStatus } from '../../src/events/for-tests.ts';

describe('task statuses', () => {
  it.each([
    ['submitted', false],
    ['working', false],
    ['input-required', false],
    ['auth-required', false],
    ['completed', true],
    ['failed', true],
    ['canceled', true],
    ['rejected', true],
  ] as const)('%s: terminal is %s', (status, terminal) => {
    expect(isTerminal(status)).toBe(terminal);
    expect(taskStatus(status)).toBe(status);
  });

  it.each(['auth_required', 'input_required', 'Completed', 'cancelled', ' completed', '', undefined])(
    '%j is none: exactly as written',
    (word) => {
      expect(taskStatus(word)).toBeUndefined();
    },
  );

  it.each(['constructor', '__proto__', 'toString'])('%s is no status', (word) => {
    expect(taskStatus(word)).toBeUndefined();
  });
});

describe('agent-transport states are normalised', () => {
  it.each([
    ['input-required', 'input-required'],
    ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
    ['TASK_STATE_WORKING', 'working'],
    ['input_required', 'input-required'],
    ['COMPLETED', 'completed'],
    ['Auth-Required', 'auth-required'],
    ['TASK_STATE_TASK_STATE_WORKING', 'task-state-working'],
    ['task_state_working', 'task-state-working'],
    [' working', ' working'],
  ])('%s → %s', (state, expected) => {
    expect(normaliseState(state)).toBe(expected);
  });

  it('lower-cases ASCII only: a Kelvin sign is no k', () => {
    expect(taskStatus(normaliseState('WOR\u212AING'))).toBeUndefined();
  });
});
