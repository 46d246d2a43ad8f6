import { describe, expect, it } from 'vitest';
import {
  codeOf,
  agentTask,
  completedTask,
  deliveryReport,
  encode,
  eventOf,
  eventOfKind,
  KEY,
  readOk,
  TIMESTAMP,
  toolEnvelope,
  warningCodes,
} from './helpers.ts';
import { readEvent } from '../../src/events/index.ts';

describe('tool transport: a task event', () => {
  it('has every member of the envelope', () => {
    const payload = toolEnvelope({ context: { trace: 'x' }, notification_id: 'n_1', unknown_member: [1] });
    expect(eventOf(payload, { sender: 'https://seller.example/mcp' })).toEqual(
      completedTask({
        transport: 'tool',
        sender: 'https://seller.example/mcp',
        idempotencyKeySource: 'envelope',
        envelope: payload,
      }),
    );
  });

  it.each([
    ['submitted', false],
    ['working', false],
    ['input-required', false],
    ['auth-required', false],
    ['completed', true],
    ['failed', true],
    ['canceled', true],
    ['rejected', true],
  ])('%s is typed; terminal: %s', (status, terminal) => {
    const reading = readOk(toolEnvelope({ status }));
    expect(reading.event).toMatchObject({ kind: 'task', status });
    expect(reading.terminal).toBe(terminal);
    expect(reading.instant?.ms).toBe(Date.parse(TIMESTAMP));
  });

  it('keeps unknown members', () => {
    const result = { deep: { x_vendor: [1, { y: null }] } };
    const event = eventOf(toolEnvelope({ result, x_vendor: true }));
    expect(event.data).toEqual(result);
    expect(event.envelope['x_vendor']).toBe(true);
  });

  it.each([undefined, null])('completed with the result %j goes to other, and is no end', (result) => {
    const reading = eventOf(toolEnvelope({ result }));
    expect(reading).toMatchObject({ kind: 'other', taskId: 'task_1', status: 'completed' });
    expect(warningCodes(reading)).toEqual(['completed_without_data']);
    expect(eventOf(toolEnvelope({ status: 'canceled', result })).kind).toBe('task');
  });

  it.each(['text', 7, [1, 2], {}])('hands on a result that is not an object: %j', (result) => {
    const event = eventOf(toolEnvelope({ result }));
    expect(event.kind).toBe('task');
    expect(event.data).toEqual(result);
  });

  it('lets no member reach a prototype', () => {
    const text = `{"idempotency_key":"${KEY}","task_id":"t","status":"completed","task_type":"__proto__","result":{"__proto__":{"polluted":1}},"__proto__":{"operation_id":"forged"}}`;
    const event = eventOf(text);
    expect(event.operationId).toBeUndefined();
    expect(event.taskType).toBe('__proto__');
    expect(Object.getPrototypeOf(event.data)).toBe(Object.prototype);
    expect(JSON.stringify(event.data)).toBe('{"__proto__":{"polluted":1}}');
    expect('polluted' in {}).toBe(false);
  });
});

describe('tool transport: idempotency_key', () => {
  it.each(['a'.repeat(16), 'a'.repeat(255), 'AZaz09_.:-AZaz09', '----------------'])('takes %s', (key) => {
    expect(eventOf(toolEnvelope({ idempotency_key: key })).idempotencyKey).toBe(key);
  });

  it.each([undefined, null])('absent (%s): missing_idempotency_key', (key) => {
    expect(codeOf(toolEnvelope({ idempotency_key: key }))).toBe('missing_idempotency_key');
  });

  it.each([
    '',
    'a'.repeat(15),
    'a'.repeat(256),
    `${'a'.repeat(16)} `,
    `${'a'.repeat(16)}\n`,
    `${'a'.repeat(16)}/`,
    `${'a'.repeat(16)}{}`,
    `${'a'.repeat(16)}é`,
    `${'a'.repeat(16)}*`,
    1234567890123456,
    ['a'.repeat(16)],
    {},
    true,
  ])('of wrong length, characters or type (%j): invalid_envelope', (key) => {
    expect(codeOf(toolEnvelope({ idempotency_key: key }))).toBe('invalid_envelope');
  });

  it('is never taken from metadata, and never derived', () => {
    const payload = toolEnvelope({ idempotency_key: undefined, metadata: { idempotency_key: KEY } });
    expect(codeOf(payload)).toBe('missing_idempotency_key');
  });

  it('is looked at before the other members', () => {
    expect(codeOf({ status: 'active' })).toBe('missing_idempotency_key');
    expect(codeOf({ idempotency_key: 'short' })).toBe('invalid_envelope');
  });
});

describe('tool transport: task_id and status', () => {
  it.each([
    ['task_id', toolEnvelope({ task_id: undefined })],
    ['task_id is null', toolEnvelope({ task_id: null })],
    ['status', toolEnvelope({ status: undefined })],
    ['both, beside a result', { idempotency_key: KEY, result: {} }],
    ['task_id, though status is a media buy’s', toolEnvelope({ task_id: undefined, status: 'active' })],
  ])('missing: %s → missing_envelope_fields', (_name, payload) => {
    expect(codeOf(payload)).toBe('missing_envelope_fields');
  });

  it('a bare delivery-report result → missing_envelope_fields', () => {
    expect(codeOf(deliveryReport())).toBe('missing_envelope_fields');
    expect(codeOf({ ...deliveryReport(), idempotency_key: KEY })).toBe('missing_envelope_fields');
    expect(codeOf({ ...deliveryReport(), idempotency_key: KEY, status: 'completed' })).toBe(
      'missing_envelope_fields',
    );
    expect(codeOf(deliveryReport({ notification_type: undefined }))).toBe('missing_envelope_fields');
    expect(codeOf(deliveryReport(), { format: 'agent' })).toBe('missing_envelope_fields');
  });

  it('a report’s type beside a result makes no report of it', () => {
    const typed = { notification_type: 'scheduled' };
    expect(eventOf(toolEnvelope(typed)).kind).toBe('task');
    // In its place it is a report that is not whole.
    const event = eventOf(toolEnvelope({ ...typed, result: undefined }));
    expect(warningCodes(event)).toEqual(['invalid_delivery_report']);
  });

  it.each(['active', 'paused', 'reporting_delayed'])(
    'the media-buy word %s at the top level → invalid_envelope_status',
    (status) => {
      expect(codeOf(toolEnvelope({ status }))).toBe('invalid_envelope_status');
      const result = deliveryReport({ media_buy_deliveries: [{ media_buy_id: 'm', status }] });
      expect(codeOf(toolEnvelope({ result }))).toBe('ok');
    },
  );

  it.each([null, 5, true, [], ['completed'], {}])('status %j → invalid_envelope', (status) => {
    expect(codeOf(toolEnvelope({ status }))).toBe('invalid_envelope');
  });

  it.each([5, true, [], {}, ''])('task_id %j → invalid_envelope', (task_id) => {
    expect(codeOf(toolEnvelope({ task_id }))).toBe('invalid_envelope');
  });

  it.each(['archived', 'Completed', 'input_required', 'auth_required', 'cancelled', '', 'constructor'])(
    'the unknown status %j → kind other, warning unknown_status',
    (status) => {
      const reading = readOk(toolEnvelope({ status }));
      expect(reading.event).toMatchObject({ kind: 'other', status, taskId: 'task_1' });
      expect(reading.event.data).toEqual({ media_buy_id: 'mb_1' });
      expect('family' in reading.event).toBe(false);
      expect(warningCodes(reading.event)).toEqual(['unknown_status']);
      expect(reading).toMatchObject({ terminal: false });
      expect('instant' in reading).toBe(false);
    },
  );

  it('shows an unknown status sanitized', () => {
    const [warning] = eventOf(toolEnvelope({ status: 'odd\nforged line' })).warnings;
    expect(warning?.message).toContain('("odd")');
  });
});

describe('tool transport: expected members are reported, not refused', () => {
  it.each([
    ['operation_id', 'missing_operation_id'],
    ['task_type', 'missing_task_type'],
    ['timestamp', 'missing_timestamp'],
  ])('%s absent → warning %s', (member, code) => {
    expect(warningCodes(eventOf(toolEnvelope({ [member]: undefined })))).toEqual([code]);
    expect(warningCodes(eventOf(toolEnvelope({ [member]: null })))).toEqual([code]);
  });

  it('of edition 3.0, which does not have it, no operation_id is no warning', () => {
    const bare = toolEnvelope({ operation_id: undefined });
    for (const [edition, codes] of [
      ['3.0', []],
      ['3.1', ['missing_operation_id']],
      ['3.2', ['missing_operation_id']],
    ] as const) {
      expect(warningCodes(eventOf(bare, { edition }))).toEqual(codes);
    }
  });

  it('reports all three', () => {
    const event = eventOf({ idempotency_key: KEY, task_id: 't', status: 'working' });
    expect(warningCodes(event)).toEqual(['missing_operation_id', 'missing_task_type', 'missing_timestamp']);
  });

  it.each(['yesterday', '', '2026-03-01T12:00:00', 1772366400, {}])(
    'a timestamp that is not an instant (%j) → warning invalid_timestamp, not ordered',
    (timestamp) => {
      const reading = readOk(toolEnvelope({ timestamp }));
      expect(warningCodes(reading.event)).toEqual(['invalid_timestamp']);
      expect(reading.event.kind).toBe('task');
      expect(reading.instant).toBeUndefined();
    },
  );

  it('keeps the timestamp as sent', () => {
    const timestamp = '2026-03-01T14:00:00.123456789+02:00';
    const { event, instant } = readOk(toolEnvelope({ timestamp }));
    expect(event.timestamp).toBe(timestamp);
    expect(instant?.key.endsWith('.123456789')).toBe(true);
  });
});

describe('correlation', () => {
  it('operationId comes only from the payload, exactly as sent', () => {
    const operation_id = ' Op/1?x=%20 é ';
    expect(eventOf(toolEnvelope({ operation_id })).operationId).toBe(operation_id);
    expect(eventOf(toolEnvelope({ operation_id: 7 })).operationId).toBeUndefined();
    const elsewhere = {
      operation_id: undefined,
      result: { operation_id: 'x' },
      context: { operation_id: 'y' },
    };
    expect(eventOf(toolEnvelope(elsewhere)).operationId).toBeUndefined();
  });

  it.each([[{ a: [1, { b: null }] }], ['text'], [null], [0], [false]])(
    'context %j is echoed verbatim',
    (context) => {
      expect(eventOf(toolEnvelope({ context })).context).toEqual(context);
      expect('context' in eventOf(toolEnvelope({ context }))).toBe(true);
    },
  );

  it('no context, no member', () => {
    expect('context' in eventOf(toolEnvelope())).toBe(false);
  });

  it('notification_id is at the top level, else in result', () => {
    expect(
      eventOf(toolEnvelope({ notification_id: 'a', result: { notification_id: 'b' } })).notificationId,
    ).toBe('a');
    expect(eventOf(toolEnvelope({ result: { notification_id: 'b' } })).notificationId).toBe('b');
    expect(eventOf(toolEnvelope({ notification_id: 5 })).notificationId).toBeUndefined();
  });
});

describe('the result’s error member (verification.md §7.35)', () => {
  const result = { proto_error: { code: 'X' }, acme_error: { code: 'Y' } };

  it('carries the protocol’s name', () => {
    const payload = toolEnvelope({ status: 'failed', result });
    expect(eventOfKind('task', payload).error).toEqual({ code: 'X', message: '' });
    expect(eventOfKind('task', payload, { protocol: 'acme' }).error).toEqual({
      code: 'Y',
      message: '',
    });
  });

  const ERROR = { code: 'BUDGET_TOO_LOW', message: 'Raise it.', field: 'packages[0].budget' };
  const SHAPE = { ...ERROR, recovery: 'correctable' };

  it.each([
    ['errors[] of the result', { result: { errors: [null, ERROR, { code: 'OTHER' }] } }],
    ['adcp_error', { result: { adcp_error: ERROR, errors: [{ code: 'OTHER' }] } }],
    ['error, as a poll has it', { result: { error: ERROR } }],
    ['a null before it', { result: { adcp_error: null, proto_error: null, error: null, errors: [ERROR] } }],
    ['the envelope, without a result', { result: null, error: ERROR }],
    ['errors[] of the envelope', { result: { reason: 'no' }, errors: [ERROR] }],
  ])('is one shape, wherever it stands: %s', (_where, members) => {
    for (const status of ['failed', 'rejected', 'canceled']) {
      const event = eventOfKind('task', toolEnvelope({ status, ...members }));
      expect(event.error).toEqual(SHAPE);
      expect(event.data).toEqual(members.result);
    }
  });

  it('of an agent’s task it is in the data part', () => {
    const task = agentTask('failed', {
      artifacts: [{ artifactId: 'a', parts: [{ data: { errors: [ERROR] } }] }],
    });
    expect(eventOfKind('task', task).error).toEqual(SHAPE);
  });

  it('of what did not fail, errors are warnings of the result', () => {
    for (const members of [{ errors: [ERROR] }, { error: ERROR }, { adcp_error: null }]) {
      const event = eventOfKind('task', toolEnvelope({ result: { media_buy_id: 'mb', ...members } }));
      expect(event).not.toHaveProperty('error');
    }
    const result = { media_buy_id: 'mb', adcp_error: ERROR };
    expect(eventOfKind('task', toolEnvelope({ result })).error).toEqual(SHAPE);
  });

  it('is absent where the result has none', () => {
    expect('error' in eventOf(toolEnvelope())).toBe(false);
    expect('error' in eventOf(toolEnvelope({ result: 'text' }))).toBe(false);
  });
});

describe('check 14 comes before the envelope', () => {
  it.each(['', '[]', '{"idempotency_key":1,"idempotency_key":2}', '{"a":'])(
    '%j → webhook_body_malformed',
    (body) => {
      expect(readEvent(encode(body))).toMatchObject({ ok: false, code: 'webhook_body_malformed', check: 14 });
    },
  );
});
