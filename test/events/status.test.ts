import { describe, expect, it } from 'vitest';
import { agentStatus, isTerminal, normaliseState, toolStatus } from '../../src/events/status.ts';

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
    expect(agentStatus(status)).toBe(status);
  });

  it('the seven of contract.md §7.1 are the tool transport’s, exactly as written', () => {
    expect(toolStatus('input-required')).toBe('input-required');
    for (const word of ['auth-required', 'input_required', 'Completed', 'cancelled', ' completed', '']) {
      expect(toolStatus(word)).toBeUndefined();
    }
  });

  it.each(['constructor', '__proto__', 'toString'])('%s is no status', (word) => {
    expect(toolStatus(word)).toBeUndefined();
    expect(agentStatus(word)).toBeUndefined();
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
    expect(agentStatus(normaliseState('WOR\u212AING'))).toBeUndefined();
  });
});
