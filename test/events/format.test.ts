import { describe, expect, it } from 'vitest';
import { detectFormat, extractData } from '../../src/events/index.ts';
import { agentTask, codeOf, eventOf, KEY, toolEnvelope } from './helpers.ts';

describe('format detection (contract.md §6.6)', () => {
  it('status a string and task_id present: tool transport', () => {
    expect(detectFormat(toolEnvelope())).toBe('tool');
    expect(detectFormat({ status: 'completed', task_id: 't' })).toBe('tool');
  });

  it('status an object with state: agent transport', () => {
    expect(detectFormat(agentTask('working'))).toBe('agent');
    expect(detectFormat({ status: { state: 'working' } })).toBe('agent');
    expect(detectFormat({ status: { state: 'working' }, task_id: 't' })).toBe('agent');
  });

  it.each(['task', 'statusUpdate', 'message', 'artifactUpdate'])(
    'wrapped in {%s}: agent transport',
    (name) => {
      expect(detectFormat({ [name]: agentTask('working') })).toBe('agent');
    },
  );

  it.each([
    ['a status alone', { status: 'completed' }],
    ['a task_id alone', { task_id: 't' }],
    ['a status without state', { status: {} }],
    ['a status that is a list', { status: ['working'], task_id: 't' }],
    ['a task_id that is null', { status: 'completed', task_id: null }],
    ['nothing', {}],
    ['null', null],
    ['a string', 'completed'],
    ['a list', [toolEnvelope()]],
  ])('%s is no evidence: the registered format, if any', (_name, payload) => {
    expect(detectFormat(payload)).toBeUndefined();
    expect(detectFormat(payload, 'tool')).toBe('tool');
    expect(detectFormat(payload, 'agent')).toBe('agent');
  });

  it('the registered format comes first', () => {
    expect(detectFormat(toolEnvelope(), 'tool')).toBe('tool');
    expect(detectFormat(agentTask('working'), 'agent')).toBe('agent');
    expect(codeOf({ idempotency_key: KEY, status: 'completed' }, { format: 'agent' })).toBe(
      'invalid_envelope',
    );
    expect(codeOf({ idempotency_key: KEY, status: 'completed' }, { format: 'tool' })).toBe(
      'missing_envelope_fields',
    );
  });

  it('a seller registered on both channels sends two envelopes a change: both are read', () => {
    for (const format of ['tool', 'agent'] as const) {
      expect(eventOf(toolEnvelope(), { format }).transport).toBe('tool');
      expect(eventOf(agentTask('completed'), { format }).transport).toBe('agent');
    }
  });

  it('a body without evidence is read as tool transport', () => {
    expect(codeOf({})).toBe('missing_idempotency_key');
    expect(codeOf({ idempotency_key: KEY, task_id: 't', status: {} })).toBe('invalid_envelope');
  });
});

describe('extractData', () => {
  it('gives the value itself, unchanged', () => {
    const result = { a: 1 };
    expect(extractData(toolEnvelope({ result }))).toBe(result);
    const artifacts = [{ artifactId: 'a', parts: [{ kind: 'data', data: result }] }];
    expect(extractData(agentTask('completed', { artifacts }))).toBe(result);
    expect(extractData({ task: agentTask('completed', { artifacts }) }, 'agent')).toBe(result);
  });

  it.each([undefined, null, 1, 'text', [], {}, { task: { task: { status: { state: 'completed' } } } }])(
    'gives undefined where there is none: %j',
    (payload) => {
      expect(extractData(payload)).toBeUndefined();
      expect(extractData(payload, 'agent')).toBeUndefined();
    },
  );

  it.each([
    ['an unknown state', agentTask('archived')],
    ['a message', { message: { parts: [] } }],
    ['a bare message', { kind: 'message' }],
    ['an artifact', { artifactUpdate: { artifact: {} } }],
    ['a bare artifact', { kind: 'artifact-update', artifact: {} }],
  ])('gives undefined for %s, whatever data it has', (_name, payload: object) => {
    const parts = [{ kind: 'data', data: { a: 1 } }];
    const members = { artifacts: [{ parts }], message: { parts }, artifact: { parts } };
    const [[name, inner] = ['', {}]] = Object.entries(payload);
    const filled = typeof inner === 'object' ? { [name]: { ...(inner as object), parts } } : {};
    for (const body of [
      { ...payload, parts, ...members },
      { ...payload, ...filled },
    ]) {
      expect(extractData(body)).toBeUndefined();
      expect(extractData(body, 'agent')).toBeUndefined();
    }
  });

  it('does not pass on a data part that is only {response: {…}}', () => {
    const artifacts = [{ parts: [{ data: { response: { a: 1 } } }] }];
    expect(extractData(agentTask('completed', { artifacts }))).toBeUndefined();
  });
});
