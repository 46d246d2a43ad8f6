import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod/mini';
import { parseResult, type StandardSchema } from '../../src/events/index.ts';
import { agentTask, deliveryReport, eventOf, toolEnvelope, warningCodes } from './helpers.ts';

const created = z.object({ media_buy_id: z.string() });

const standard = (validate: StandardSchema['~standard']['validate']): StandardSchema => ({
  '~standard': { version: 1, vendor: 'hand-made', validate },
});

const throwing = (error: unknown) =>
  standard(() => {
    throw error;
  });

describe('result schemas (Standard Schema)', () => {
  it('zod: a matching result is event.parsed, typed; data stays as sent', async () => {
    const sent = eventOf(toolEnvelope({ result: { media_buy_id: 'mb_1', extra: true } }));
    const event = await parseResult(sent, { create_media_buy: created });
    if (event.kind !== 'task' || event.parsed?.taskType !== 'create_media_buy') throw new Error('not parsed');
    expectTypeOf(event.parsed.data.media_buy_id).toEqualTypeOf<string>();
    expect(event.parsed).toEqual({ taskType: 'create_media_buy', data: { media_buy_id: 'mb_1' } });
    expect(event.data).toEqual({ media_buy_id: 'mb_1', extra: true });
    expect(event.warnings).toEqual([]);
    expect('parsed' in sent).toBe(false);
  });

  it('a hand-written asynchronous schema: its output is used', async () => {
    const schema = standard(async (value) => ({ value: { wrapped: value } }));
    const event = await parseResult(eventOf(toolEnvelope()), { create_media_buy: schema });
    expect(event).toMatchObject({ parsed: { data: { wrapped: { media_buy_id: 'mb_1' } } } });
  });

  it('a result that does not fit is passed on with a warning that names places, not values', async () => {
    const result = { media_buy_id: { secret: 'value' } };
    const event = await parseResult(eventOf(toolEnvelope({ result })), { create_media_buy: created });
    expect('parsed' in event).toBe(false);
    expect(event.data).toEqual(result);
    expect(warningCodes(event)).toEqual(['result_schema_mismatch']);
    expect(event.warnings[0]?.message).toMatch(/\(at media_buy_id\)$/);
  });

  it.each([
    [[{ message: 'secret' }], 'at the result'],
    [[{ message: 'x', path: ['a', { key: 'b' }, 0] }], 'at a.b.0'],
    [[{ message: 'x', path: ['a\nforged'] }], 'at a'],
    [Array.from({ length: 9 }, () => ({ message: 'x', path: ['p'] })), 'at p, p, p, p'],
  ])('names at most four places, sanitized', async (issues, places) => {
    const schema = standard(() => ({ issues }));
    const event = await parseResult(eventOf(toolEnvelope()), { create_media_buy: schema });
    expect(event.warnings[0]?.message.endsWith(`(${places})`)).toBe(true);
  });

  it.each([
    ['throws', throwing(new Error('boom'))],
    ['rejects', standard(() => Promise.reject(new Error('boom')))],
    ['gives nothing', standard(() => undefined as never)],
    ['is no schema', {} as StandardSchema],
  ])('a schema that %s → the same warning', async (_name, schema) => {
    const event = await parseResult(eventOf(toolEnvelope()), { create_media_buy: schema });
    expect(warningCodes(event)).toEqual(['result_schema_mismatch']);
    expect(event).toMatchObject({ kind: 'task', status: 'completed' });
  });

  it('keeps earlier warnings', async () => {
    const event = eventOf(toolEnvelope({ operation_id: undefined }));
    const parsed = await parseResult(event, { create_media_buy: throwing('x') });
    expect(warningCodes(parsed)).toEqual(['missing_operation_id', 'result_schema_mismatch']);
  });

  it.each(['__proto__', 'constructor', 'toString', 'other_task'])(
    'a task type %s has no schema',
    async (task_type) => {
      const event = eventOf(toolEnvelope({ task_type }));
      expect(await parseResult(event, { create_media_buy: throwing('x') })).toEqual(event);
    },
  );

  it('takes the agent transport’s task_type from metadata', async () => {
    const artifacts = [{ parts: [{ data: { media_buy_id: 'mb_1' } }] }];
    const event = eventOf(agentTask('completed', { artifacts, metadata: { task_type: 'create_media_buy' } }));
    expect(await parseResult(event, { create_media_buy: created })).toHaveProperty('parsed');
  });

  it.each([
    ['progress', toolEnvelope({ status: 'working', result: { percentage: 1 } })],
    ['an input request', toolEnvelope({ status: 'input-required', result: { reason: 'x' } })],
    ['an end without a result', toolEnvelope({ status: 'canceled', result: undefined })],
    ['a delivery report', toolEnvelope({ result: deliveryReport() })],
    ['an unknown status', toolEnvelope({ status: 'archived' })],
    ['another family', toolEnvelope({ event_type: 'impairment' })],
  ])('leaves %s alone', async (_name, payload) => {
    const event = eventOf(payload);
    expect(await parseResult(event, { create_media_buy: throwing('x') })).toEqual(event);
  });

  it('without schemas the event is the same', async () => {
    const event = eventOf(toolEnvelope());
    expect(await parseResult(event, undefined)).toBe(event);
  });
});
