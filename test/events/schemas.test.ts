import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  agentTaskSchema,
  agentTaskStatusUpdateSchema,
  deliveryReportSchema,
  inputRequestSchema,
  readEvent,
  toolEnvelopeSchema,
  workingProgressSchema,
} from '../../src/events/index.ts';
import { agentTask, deliveryReport, encode, eventOf, KEY, TIMESTAMP, toolEnvelope } from './helpers.ts';

const junk = fc.constantFrom<unknown>(
  undefined,
  null,
  0,
  -1.5,
  true,
  '',
  'x',
  [],
  ['x'],
  {},
  { state: 'working' },
);
const oneOf = (...good: readonly unknown[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: junk });

const envelope = fc.record({
  idempotency_key: oneOf(KEY, 'a'.repeat(255), 'a'.repeat(15)),
  task_id: oneOf('task_1'),
  status: oneOf('completed', 'working', 'input-required', 'archived', 'active', 'paused'),
  operation_id: oneOf('op_1'),
  task_type: oneOf('create_media_buy', 'media_buy_delivery'),
  domain: oneOf('media-buy'),
  timestamp: oneOf(TIMESTAMP),
  message: oneOf('Done'),
  result: oneOf({ a: 1 }, deliveryReport()),
});

const agent = fc.record({
  idempotency_key: fc.constant(KEY),
  id: oneOf('task_1'),
  taskId: oneOf('task_1'),
  contextId: oneOf('ctx_1'),
  status: fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        state: oneOf('working', 'TASK_STATE_COMPLETED', 'archived'),
        timestamp: oneOf(TIMESTAMP),
      }),
    },
    { weight: 1, arbitrary: junk },
  ),
  artifacts: oneOf([{ artifactId: 'a', parts: [{ kind: 'data', data: { a: 1 } }] }]),
});

const OPTIONAL = ['operation_id', 'task_type', 'domain', 'timestamp', 'message'] as const;

describe('schemas agree with the reader', () => {
  it('toolEnvelopeSchema: what fits is read; what is read and well typed fits', () => {
    let [fitting, typedTasks, others] = [0, 0, 0];
    fc.assert(
      fc.property(envelope, (sent) => {
        const payload = JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
        const fits = toolEnvelopeSchema.safeParse(payload).success;
        const reading = readEvent(encode(payload), { format: 'tool' });
        if (fits) fitting += 1;
        else others += 1;
        if (fits) expect(reading.ok).toBe(true);
        const typed = OPTIONAL.every((name) => payload[name] == null || typeof payload[name] === 'string');
        // Without both it is no broken envelope but a webhook of another family.
        const task = 'task_id' in payload && 'status' in payload;
        if (!reading.ok || reading.event.transport !== 'tool' || !task || !typed) return;
        typedTasks += 1;
        expect(fits).toBe(true);
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(fitting, typedTasks, others)).toBeGreaterThan(20);
  });

  it('agentTaskSchema, agentTaskStatusUpdateSchema: what fits is read', () => {
    let fitting = 0;
    fc.assert(
      fc.property(agent, (payload) => {
        const fits = [agentTaskSchema, agentTaskStatusUpdateSchema].some(
          (schema) => schema.safeParse(payload).success,
        );
        if (!fits) return;
        fitting += 1;
        expect(readEvent(encode(payload)).ok).toBe(true);
      }),
      { numRuns: 1000 },
    );
    expect(fitting).toBeGreaterThan(50);
  });

  it('deliveryReportSchema: exactly what is of kind delivery-report', () => {
    const report = fc.record({
      notification_type: oneOf('scheduled', 'final', 'weekly'),
      sequence_number: oneOf(1),
      reporting_period: oneOf({ start: 'a', end: 'b' }, { start: 'a' }),
      currency: oneOf('USD'),
      media_buy_deliveries: oneOf([{ media_buy_id: 'm' }], [{ media_buy_id: 'm', totals: { spend: 'x' } }]),
    });
    fc.assert(
      fc.property(report, (sent) => {
        const result = JSON.parse(JSON.stringify(sent)) as unknown;
        const { kind } = eventOf(toolEnvelope({ task_type: 'media_buy_delivery', result }));
        expect(kind === 'delivery-report').toBe(deliveryReportSchema.safeParse(result).success);
      }),
      { numRuns: 500 },
    );
  });
});

describe('schemas accept what contract.md §6 describes and keep unknown members', () => {
  it.each([
    ['toolEnvelopeSchema', toolEnvelopeSchema, toolEnvelope({ x: 1 })],
    ['agentTaskSchema', agentTaskSchema, agentTask('completed', { x: 1 })],
    ['agentTaskStatusUpdateSchema', agentTaskStatusUpdateSchema, agentTask('working', { taskId: 't', x: 1 })],
    ['deliveryReportSchema', deliveryReportSchema, deliveryReport({ x: 1 })],
    ['workingProgressSchema', workingProgressSchema, { percentage: 1, x: 1 }],
    ['inputRequestSchema', inputRequestSchema, { reason: 'r', x: 1 }],
  ])('%s', (_name, schema, value) => {
    const parsed = schema.safeParse(value);
    expect(parsed.success && parsed.data).toEqual(value);
  });

  it.each([
    ['toolEnvelopeSchema', toolEnvelopeSchema],
    ['agentTaskSchema', agentTaskSchema],
    ['agentTaskStatusUpdateSchema', agentTaskStatusUpdateSchema],
    ['deliveryReportSchema', deliveryReportSchema],
  ])('%s refuses what is none', (_name, schema) => {
    for (const value of [undefined, null, 1, 'x', [], {}])
      expect(schema.safeParse(value).success).toBe(false);
  });
});
