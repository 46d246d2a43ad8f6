import { describe, expect, it } from 'vitest';
import { agentTask, eventOf, eventOfKind, toolEnvelope, warningCodes } from './helpers.ts';

const working = (result: unknown) => eventOfKind('task', toolEnvelope({ status: 'working', result }));
const asking = (result: unknown) => eventOfKind('task', toolEnvelope({ status: 'input-required', result }));

describe('typed progress of `working` (contract.md §6.2)', () => {
  it.each([
    [{ percentage: 40, current_step: 'pricing', total_steps: 3, extra: [] }],
    [{ percentage: 0, current_step: 2 }],
    [{ percentage: null }],
    [{}],
  ])('%j', (result) => {
    const event = working(result);
    expect(event.progress).toEqual(result);
    expect(event.progress).toBe(event.data);
    expect(event.warnings).toEqual([]);
  });

  it.each([[{ percentage: '40' }], [{ total_steps: true }], [{ current_step: {} }], ['half'], [[1]]])(
    '%j: no progress, warning invalid_progress, data unchanged',
    (result) => {
      const event = working(result);
      expect('progress' in event).toBe(false);
      expect(event.data).toEqual(result);
      expect(warningCodes(event)).toEqual(['invalid_progress']);
    },
  );

  it.each([undefined, null])('no result (%s) is no mistake', (result) => {
    expect('progress' in working(result)).toBe(false);
    expect(working(result).warnings).toEqual([]);
  });

  it('in agent transport too', () => {
    const status = { state: 'TASK_STATE_WORKING', message: { parts: [{ data: { percentage: 5 } }] } };
    expect(eventOfKind('task', agentTask('', { status })).progress).toEqual({ percentage: 5 });
  });
});

describe('typed input request of `input-required`', () => {
  it.each([
    [{ reason: 'budget', validation_errors: [{ field: 'x' }] }],
    [{ reason: 'budget' }],
    [{ other: 1 }],
  ])('%j', (result) => {
    expect(asking(result).inputRequest).toEqual(result);
    expect(asking(result).warnings).toEqual([]);
    expect('progress' in asking(result)).toBe(false);
  });

  it.each([[{ reason: 5 }], [{ validation_errors: 'none' }], ['why']])(
    '%j → warning invalid_progress',
    (result) => {
      expect('inputRequest' in asking(result)).toBe(false);
      expect(warningCodes(asking(result))).toEqual(['invalid_progress']);
    },
  );
});

it.each(['submitted', 'completed', 'failed', 'canceled', 'rejected'])('%s has neither', (status) => {
  const event = eventOf(toolEnvelope({ status, result: { percentage: 'x', reason: 5 } }));
  expect(event.warnings).toEqual([]);
  expect('progress' in event || 'inputRequest' in event).toBe(false);
});
