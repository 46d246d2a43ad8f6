import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  agentTask,
  codeOf,
  completedTask,
  encode,
  eventOf,
  eventOfKind,
  KEY,
  readOk,
  TIMESTAMP,
  toolEnvelope,
  warningCodes,
} from './helpers.ts';
import { extractData } from '../../src/events/index.ts';

const data = (value: unknown) => ({ kind: 'data', data: value });
const text = (value: string) => ({ kind: 'text', text: value });
const artifact = (...parts: readonly unknown[]) => ({ artifactId: 'a', parts });
const withMessage = (state: string, ...parts: readonly unknown[]) => ({
  status: { state, timestamp: TIMESTAMP, message: { role: 'agent', parts } },
});

const FINAL = ['completed', 'failed', 'canceled', 'rejected'];
const INTERIM = ['working', 'submitted', 'input-required', 'auth-required'];
const prefixed = (state: string) => `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;

describe('agent transport: Task and TaskStatusUpdateEvent', () => {
  it('a Task has every member', () => {
    const payload = agentTask('completed', {
      status: { state: 'completed', timestamp: TIMESTAMP, message: { parts: [text('Done'), text('!')] } },
      artifacts: [artifact(data({ media_buy_id: 'mb_1' }))],
      metadata: {
        idempotency_key: KEY,
        operation_id: 'op_1',
        task_type: 'create_media_buy',
        context: { trace: 'x' },
        notification_id: 'n_1',
      },
    });
    expect(eventOf(payload, { sender: 'https://seller.example/a2a' })).toEqual(
      completedTask({
        transport: 'agent',
        sender: 'https://seller.example/a2a',
        idempotencyKeySource: 'metadata',
        contextId: 'ctx_1',
        envelope: payload,
      }),
    );
  });

  it('taskId = taskId ?? id', () => {
    expect(eventOf(agentTask('working', { taskId: 'real' })).taskId).toBe('real');
    expect(eventOf(agentTask('working', { id: undefined, taskId: 'real' })).taskId).toBe('real');
    expect(eventOf(agentTask('working')).taskId).toBe('task_1');
    expect(eventOf(agentTask('working', { taskId: null })).taskId).toBe('task_1');
    expect(codeOf(agentTask('working', { id: undefined }))).toBe('missing_envelope_fields');
    expect(codeOf(agentTask('working', { id: '' }))).toBe('missing_envelope_fields');
  });

  it('timestamp = status.timestamp, and orders the task', () => {
    const reading = readOk(agentTask('working', { timestamp: '2020-01-01T00:00:00Z' }));
    expect(reading.event.timestamp).toBe(TIMESTAMP);
    expect(reading.instant?.ms).toBe(Date.parse(TIMESTAMP));
    expect(readOk(agentTask('working', { status: { state: 'working' } })).instant).toBeUndefined();
  });

  it.each(['soon', 5])(
    'a timestamp that is not an instant (%j) → invalid_timestamp, not ordered',
    (timestamp) => {
      const reading = readOk(agentTask('working', { status: { state: 'working', timestamp } }));
      expect(warningCodes(reading.event)).toEqual(['invalid_timestamp']);
      expect(reading.instant).toBeUndefined();
    },
  );

  it.each([...FINAL, ...INTERIM])('%s in both spellings', (state) => {
    for (const spelling of [state, prefixed(state)]) {
      const artifacts = [artifact(data({ n: 1 }))];
      const reading = readOk(agentTask(spelling, { artifacts }));
      expect(reading.event).toMatchObject({ kind: 'task', status: state });
      expect(reading.terminal).toBe(FINAL.includes(state));
    }
  });

  it.each(['task', 'statusUpdate'])('wrapped once in {%s}', (name) => {
    const inner = agentTask('completed', { artifacts: [artifact(data({ a: 1 }))] });
    const event = eventOf({ [name]: inner });
    expect(event).toMatchObject({ kind: 'task', taskId: 'task_1', data: { a: 1 }, contextId: 'ctx_1' });
    expect(event.envelope).toEqual({ [name]: inner });
  });

  it.each([
    ['task in task', { task: { task: agentTask('completed') } }],
    ['statusUpdate in task', { task: { statusUpdate: agentTask('working') } }],
    ['task in message', { message: { task: agentTask('completed') } }],
    ['task with its status in task', { task: { ...agentTask('completed'), task: {} } }],
    ['message beside the status', { statusUpdate: agentTask('working', { message: { parts: [] } }) }],
    ['side by side', { task: agentTask('completed'), statusUpdate: agentTask('working') }],
  ])('wrapped twice (%s) is malformed', (_name, payload) => {
    expect(codeOf({ idempotency_key: KEY, ...payload })).toBe('invalid_envelope');
    expect(codeOf(payload, { format: 'agent' })).toBe('invalid_envelope');
  });

  it.each([
    ['no status', { task: { id: 't' } }, 'missing_envelope_fields'],
    ['no state', { task: { id: 't', status: {} } }, 'missing_envelope_fields'],
    ['a state that is not a string', { id: 't', status: { state: 5 } }, 'invalid_envelope'],
    ['a status that is a string', { task: { id: 't', status: 'completed' } }, 'invalid_envelope'],
    ['a status that is a list', { task: { id: 't', status: [] } }, 'invalid_envelope'],
  ])('%s', (_name, payload, code) => {
    expect(codeOf(payload)).toBe(code);
  });

  it.each(['archived', 'TASK_STATE_UNSPECIFIED', 'active', 'unknown', ''])(
    'the unknown state %j → kind other, warning unknown_status',
    (state) => {
      const reading = readOk(agentTask(state, { artifacts: [artifact(data({ a: 1 }))] }));
      expect(reading.event).toMatchObject({ kind: 'other', taskId: 'task_1', data: undefined });
      expect(warningCodes(reading.event)).toEqual(['unknown_status']);
      expect('instant' in reading).toBe(false);
      expect(codeOf(agentTask(state, { id: undefined }))).toBe('ok');
    },
  );

  it('of an unknown state nothing is extracted: no report, no mistake, no family by its data', () => {
    for (const data of [{ notification_type: 'final' }, { response: {} }, { event: 'impairment' }]) {
      const parts = [{ kind: 'data', data }];
      const status = { state: 'archived', message: { parts } };
      for (const more of [{ status }, { artifacts: [{ parts }] }]) {
        const payload = agentTask('archived', { ...more, metadata: { idempotency_key: KEY } });
        const event = eventOfKind('other', payload);
        expect('family' in event).toBe(false);
        expect(event.data).toBeUndefined();
        expect(warningCodes(event)).toEqual(['unknown_status']);
      }
    }
    const report = agentTask('archived', {
      metadata: { idempotency_key: KEY, task_type: 'media_buy_delivery' },
    });
    expect(warningCodes(eventOfKind('other', report))).toEqual(['unknown_status']);
  });

  it('gives an unknown state normalised', () => {
    expect(eventOfKind('other', agentTask('TASK_STATE_HALF_DONE')).status).toBe('half-done');
  });
});

describe('agent transport: {message} and {artifactUpdate} carry no task state', () => {
  it.each([
    [
      'wrapped',
      {
        message: {
          messageId: 'm',
          taskId: 't',
          contextId: 'c',
          parts: [text('Hi'), data({ a: 1 }), data({ b: 2 })],
        },
      },
    ],
    [
      'bare',
      { kind: 'message', messageId: 'm', taskId: 't', contextId: 'c', parts: [text('Hi'), data({ a: 1 })] },
    ],
  ])('a message, %s → kind other, family message', (_name, payload) => {
    const event = eventOfKind('other', { idempotency_key: KEY, ...payload });
    expect(event).toMatchObject({
      family: 'message',
      message: 'Hi',
      data: undefined,
      taskId: 't',
      contextId: 'c',
    });
    expect('status' in event).toBe(false);
    expect(event.warnings).toEqual([]);
  });

  it.each([
    ['wrapped', { artifactUpdate: { taskId: 't', artifact: artifact(data({ a: 1 }), data({ b: 2 })) } }],
    ['bare', { kind: 'artifact-update', taskId: 't', artifact: artifact(data({ a: 1 }), data({ b: 2 })) }],
  ])('an artifact update, %s → kind other, family artifactUpdate', (_name, payload) => {
    const event = eventOfKind('other', { idempotency_key: KEY, ...payload });
    expect(event).toMatchObject({ family: 'artifactUpdate', data: undefined, taskId: 't' });
  });

  it('is neither report nor task, whatever its data', () => {
    const payload = {
      message: { parts: [data({ notification_type: 'final' })], status: { state: 'completed' } },
    };
    expect(eventOf(payload)).toMatchObject({ kind: 'other', family: 'message' });
  });
});

describe('agent transport: which part holds the data', () => {
  it.each(FINAL)('%s: the last data part of artifacts[0]', (state) => {
    const artifacts = [
      artifact(data({ n: 1 }), text('x'), data({ n: 2 }), text('y')),
      artifact(data({ n: 3 })),
    ];
    const payload = agentTask(state, { artifacts, ...withMessage(state, data({ n: 4 })) });
    expect(eventOf(payload).data).toEqual({ n: 2 });
  });

  it.each(FINAL)('%s without one: the first data part of status.message', (state) => {
    const message = withMessage(state, text('x'), data({ n: 1 }), data({ n: 2 }));
    for (const artifacts of [
      undefined,
      [],
      [artifact(text('x'))],
      [{}],
      [null],
      'x',
      { 0: artifact(data({ n: 9 })) },
    ]) {
      expect(eventOf(agentTask(state, { ...message, artifacts })).data).toEqual({ n: 1 });
    }
  });

  it.each(INTERIM)('%s: the first data part of status.message, never an artifact', (state) => {
    const artifacts = [artifact(data({ n: 9 }))];
    expect(
      eventOf(agentTask(state, { artifacts, ...withMessage(state, data({ n: 1 }), data({ n: 2 })) })).data,
    ).toEqual({ n: 1 });
    expect(eventOf(agentTask(state, { artifacts })).data).toBeUndefined();
  });

  it.each([[null], [[1]], ['text'], [7]])('data %j is not a data part', (value) => {
    const artifacts = [artifact(data({ n: 1 }), { kind: 'data', data: value })];
    expect(eventOf(agentTask('completed', { artifacts })).data).toEqual({ n: 1 });
  });

  it('a part needs no kind', () => {
    const artifacts = [artifact({ data: { n: 1 } }, null, 'x', [])];
    expect(eventOf(agentTask('completed', { artifacts })).data).toEqual({ n: 1 });
  });

  it('a data part that is only {response: {…}} is reported, not passed on', () => {
    const mistake = { response: { a: 1 } };
    const final = eventOf(agentTask('completed', { artifacts: [artifact(data(mistake))] }));
    expect(final.data).toBeUndefined();
    // So there is a completion without data, which is no end.
    expect(warningCodes(final)).toEqual(['wrapped_response', 'completed_without_data']);
    expect(final).toMatchObject({ kind: 'other', status: 'completed' });
    const interim = eventOf(agentTask('working', withMessage('working', data(mistake))));
    expect(warningCodes(interim)).toEqual(['wrapped_response']);
  });

  it.each([
    [{ response: { a: 1 }, other: 1 }],
    [{ response: 'text' }],
    [{ response: [1] }],
    [{ response: null }],
  ])('%j is data like any other', (value) => {
    const event = eventOf(agentTask('completed', { artifacts: [artifact(data(value))] }));
    expect(event.data).toEqual(value);
    expect(event.warnings).toEqual([]);
  });

  it('lets no member reach a prototype', () => {
    const body = `{"id":"t","metadata":{"idempotency_key":"${KEY}","__proto__":{"operation_id":"forged"}},"status":{"state":"completed"},"artifacts":[{"parts":[{"data":{"__proto__":{"polluted":1},"a":1}}]}]}`;
    const event = eventOf(body);
    expect(JSON.stringify(event.data)).toBe('{"__proto__":{"polluted":1},"a":1}');
    expect(Object.getPrototypeOf(event.data)).toBe(Object.prototype);
    expect(event.operationId).toBeUndefined();
  });
});

describe('agent transport: idempotency_key', () => {
  const TOP = 'top-level-key-000';
  const INNER = 'inner-level-key-0';

  it.each([
    ['the top level', { idempotency_key: TOP, ...agentTask('working') }, TOP, 'envelope'],
    [
      'the top level, outside the wrapper',
      { idempotency_key: TOP, task: agentTask('working') },
      TOP,
      'envelope',
    ],
    ['the wrapped payload', { task: agentTask('working', { idempotency_key: INNER }) }, INNER, 'envelope'],
    ['metadata', agentTask('working'), KEY, 'metadata'],
    ['metadata of the wrapped payload', { task: agentTask('working') }, KEY, 'metadata'],
    [
      'metadata beside the wrapper',
      { task: agentTask('working', { metadata: null }), metadata: { idempotency_key: TOP } },
      TOP,
      'metadata',
    ],
  ])('from %s', (_name, payload, key, source) => {
    expect(eventOf(payload)).toMatchObject({
      idempotencyKey: key,
      idempotencyKeySource: source,
      warnings: [],
    });
  });

  it.each([undefined, null, {}, { idempotency_key: null }, 'text'])(
    'is otherwise derived from the bytes, with a warning (metadata %j)',
    (metadata) => {
      const payload = agentTask('working', { metadata });
      const event = eventOf(payload);
      expect(event.idempotencyKey).toBe(createHash('sha256').update(encode(payload)).digest('hex'));
      expect(event.idempotencyKeySource).toBe('derived');
      expect(warningCodes(event)).toEqual(['derived_idempotency_key']);
    },
  );

  it('derives with the hash it is given', () => {
    const payload = agentTask('working', { metadata: null });
    const options = { hash: (bytes: Uint8Array) => `hash-of-${bytes.length}` };
    expect(eventOf(payload, options).idempotencyKey).toBe(`hash-of-${encode(payload).length}`);
  });

  it.each(['short', '', 'x'.repeat(256), 'with spaces in the key', 17])(
    'is refused when present and invalid (%j)',
    (key) => {
      expect(codeOf(agentTask('working', { idempotency_key: key }))).toBe('invalid_envelope');
      expect(codeOf(agentTask('working', { metadata: { idempotency_key: key } }))).toBe('invalid_envelope');
    },
  );
});

describe('agent transport: operation_id, context, notification_id', () => {
  it('from the top level, else metadata', () => {
    const metadata = { idempotency_key: KEY, operation_id: 'meta', notification_id: 'meta', context: 'meta' };
    const low = eventOf(agentTask('working', { metadata }));
    expect(low).toMatchObject({ operationId: 'meta', notificationId: 'meta', context: 'meta' });
    const top = { operation_id: 'top', notification_id: 'top', context: null };
    const high = eventOf(agentTask('working', { metadata, ...top }));
    expect(high).toMatchObject({ operationId: 'top', notificationId: 'top', context: null });
    expect(eventOf({ task: agentTask('working', { metadata }), ...top })).toMatchObject({
      operationId: 'top',
    });
  });

  it('are absent where the payload has none', () => {
    const event = eventOf(agentTask('working'));
    for (const member of ['operationId', 'notificationId', 'context', 'taskType', 'message']) {
      expect(member in event).toBe(false);
    }
    expect(event.warnings).toEqual([]);
  });
});

it('both channels: transport distinguishes the two envelopes of a change', () => {
  expect(eventOf(toolEnvelope()).transport).toBe('tool');
  expect(eventOf(agentTask('completed')).transport).toBe('agent');
});

describe('agent transport: the task inside a completed Task (calls.md §1.1 to §1.5)', () => {
  const inside = (value: unknown, metadata?: object) =>
    eventOf(
      agentTask('completed', { artifacts: [{ ...artifact(data(value)), ...(metadata && { metadata }) }] }),
    );

  it.each(['submitted', 'working', 'input-required', 'auth-required'])('%s has only begun', (status) => {
    const begun = { status, task_id: 'work-1' };
    expect(inside(begun)).toMatchObject({ kind: 'task', taskId: 'work-1', status, data: begun });
    expect(inside({ status }, { adcp_task_id: 'work-1' })).toMatchObject({ taskId: 'work-1', status });
    expect(inside({ status })).toMatchObject({ taskId: 'task_1', status });
  });

  it.each(['failed', 'canceled', 'rejected'])('%s is that end', (status) => {
    expect(inside({ status, reason: 'r' })).toMatchObject({ kind: 'task', taskId: 'task_1', status });
    const beside = { status, media_buy_id: 'mb', media_buy_status: 'rejected', task_id: 'work-1' };
    expect(inside(beside)).toMatchObject({ taskId: 'work-1', status });
  });

  it.each(['completed', 'canceled', 'rejected', 'active'])(
    '%s of a media buy is left in the data',
    (status) => {
      const buy = { media_buy_id: 'mb', status };
      expect(inside(buy)).toMatchObject({ taskId: 'task_1', status: 'completed', data: buy });
    },
  );

  it('is looked for in completed alone', () => {
    const failed = agentTask('failed', {
      artifacts: [artifact(data({ status: 'submitted', task_id: 'w' }))],
    });
    expect(eventOf(failed)).toMatchObject({ taskId: 'task_1', status: 'failed' });
  });
});

describe('agent transport: data in a later artifact (calls.md §1.7)', () => {
  const first = artifact({ kind: 'text', text: 'Done.' });

  it('is found where nothing else is, with a warning', () => {
    const event = eventOf(agentTask('completed', { artifacts: [first, artifact(data({ n: 2 }))] }));
    expect(event).toMatchObject({ kind: 'task', status: 'completed', data: { n: 2 } });
    expect(warningCodes(event)).toEqual(['later_artifact']);
  });

  it('is a warning beside data of the first', () => {
    const artifacts = [artifact(data({ n: 1 })), first, artifact(data({ n: 2 }))];
    const event = eventOf(agentTask('completed', { artifacts }));
    expect(event.data).toEqual({ n: 1 });
    expect(warningCodes(event)).toEqual(['later_artifact']);
  });

  it('is not what the protocol’s own rule extracts', () => {
    const payload = agentTask('completed', { artifacts: [first, artifact(data({ n: 2 }))] });
    expect(extractData(payload, 'agent')).toBeUndefined();
  });

  it('a completion without any goes to other, and is no end', () => {
    const reading = readOk(agentTask('completed', { artifacts: [first] }));
    expect(reading).toMatchObject({
      event: { kind: 'other', taskId: 'task_1', status: 'completed' },
      terminal: false,
    });
    expect(warningCodes(reading.event)).toEqual(['completed_without_data']);
  });
});
