import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  agentTask,
  deliveryReport,
  eventOf,
  eventOfKind,
  KEY,
  readOk,
  toolEnvelope,
  warningCodes,
} from './helpers.ts';

const envelope = (result: unknown, members = {}) =>
  toolEnvelope({ task_type: 'media_buy_delivery', result, ...members });

describe('delivery reports (contract.md §6.8 to §6.11)', () => {
  it.each(['scheduled', 'final', 'delayed', 'adjusted', 'window_update'])('%s', (notification_type) => {
    const result = deliveryReport({ notification_type, x_vendor: 1 });
    const event = eventOfKind('delivery-report', envelope(result));
    expect(event.report).toEqual(result);
    expect(event.report).toBe(event.data);
    expect(event).toMatchObject({ sequenceNumber: 3, taskId: 'task_1', status: 'completed', warnings: [] });
  });

  it('is never ordered and never terminal', () => {
    const reading = readOk(envelope(deliveryReport({ notification_type: 'final' })));
    expect(reading.terminal).toBe(false);
    expect('instant' in reading).toBe(false);
  });

  it('is recognised by its result when task_type is absent or another', () => {
    expect(eventOf(envelope(deliveryReport(), { task_type: undefined })).kind).toBe('delivery-report');
    expect(eventOf(envelope(deliveryReport(), { task_type: 'create_media_buy' })).kind).toBe(
      'delivery-report',
    );
    expect(eventOf(envelope(deliveryReport(), { task_type: 'media-buy-delivery' })).kind).toBe(
      'delivery-report',
    );
  });

  it.each(['media_buy_delivery', 'media-buy-delivery', 'Media-Buy_Delivery'])(
    'task_type %s alone claims a report: a result that is none is a warning',
    (task_type) => {
      const event = eventOf(envelope({ note: 'no report' }, { task_type }));
      expect(event.kind).not.toBe('delivery-report');
      expect(warningCodes(event)).toContain('invalid_delivery_report');
    },
  );

  it.each(['media_buy_deliveries', 'media-buy-delivery-2', 'media_buy_delivery_', 'mediabuydelivery'])(
    'task_type %s claims none',
    (task_type) => {
      const event = eventOf(envelope({ note: 'no report' }, { task_type }));
      expect(warningCodes(event)).not.toContain('invalid_delivery_report');
    },
  );

  it.each([
    ['task_type says so', 'get_media_buy_delivery', { spend: 1 }],
    ['task_type is of another task', 'create_media_buy', undefined],
    ['task_type is absent', undefined, { spend: 1 }],
  ])('an answer of get_media_buy_delivery is a task’s result: %s', (_, task_type, aggregated_totals) => {
    const result = deliveryReport({ notification_type: undefined, aggregated_totals });
    if (aggregated_totals === undefined) Reflect.deleteProperty(result, 'aggregated_totals');
    const event = eventOf(envelope(result, { task_type }));
    expect(event.kind).toBe('task');
    expect(warningCodes(event)).toEqual(task_type === undefined ? ['missing_task_type'] : []);
  });

  it('an answer of get_media_buy_delivery in an agent’s Task, which has no task_type', () => {
    const { notification_type: _, ...data } = deliveryReport({ aggregated_totals: { spend: 1 } });
    const artifacts = [{ artifactId: 'a', parts: [{ kind: 'data', data }] }];
    const event = eventOf(agentTask('completed', { artifacts }));
    expect(event).toMatchObject({ kind: 'task', status: 'completed', data, warnings: [] });
  });

  const LATER = { next_expected_at: '2026-03-03T00:00:00Z', partial_data: true, unavailable_count: 2 };
  const LATER_PER_BUY = {
    expected_availability: '2026-03-03T00:00:00Z',
    is_adjusted: true,
    is_final: false,
    finalized_at: '2026-03-04T00:00:00Z',
  };

  it('what is missing and what changed is typed', () => {
    const media_buy_deliveries = [{ media_buy_id: 'm', ...LATER_PER_BUY }];
    const { report } = eventOfKind(
      'delivery-report',
      envelope(deliveryReport({ notification_type: 'window_update', ...LATER, media_buy_deliveries })),
    );
    expectTypeOf(report.next_expected_at).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(report.partial_data).toEqualTypeOf<boolean | null | undefined>();
    expectTypeOf(report.unavailable_count).toEqualTypeOf<number | null | undefined>();
    expect(report).toMatchObject(LATER);
    const buy = report.media_buy_deliveries?.[0];
    expectTypeOf(buy?.expected_availability).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(buy?.is_adjusted).toEqualTypeOf<boolean | null | undefined>();
    expectTypeOf(buy?.is_final).toEqualTypeOf<boolean | null | undefined>();
    expectTypeOf(buy?.finalized_at).toEqualTypeOf<string | null | undefined>();
    expect(buy).toMatchObject(LATER_PER_BUY);
  });

  const nulls = (members: object) => Object.fromEntries(Object.keys(members).map((name) => [name, null]));

  it('optional members may be null', () => {
    const result = deliveryReport({ sequence_number: null, currency: null, media_buy_deliveries: null });
    const event = eventOfKind('delivery-report', envelope(result));
    expect('sequenceNumber' in event).toBe(false);
    const media_buy_deliveries = [{ media_buy_id: 'm', ...nulls(LATER_PER_BUY) }];
    eventOfKind('delivery-report', envelope(deliveryReport({ ...nulls(LATER), media_buy_deliveries })));
  });

  it.each([
    ...Object.entries(LATER).map(([name]) => deliveryReport({ [name]: [] })),
    ...Object.entries(LATER_PER_BUY).map(([name]) =>
      deliveryReport({ media_buy_deliveries: [{ media_buy_id: 'm', [name]: [] }] }),
    ),
  ])('with a member of another type is passed to other, warning invalid_delivery_report (%#)', (result) => {
    expect(warningCodes(eventOfKind('other', envelope(result)))).toEqual(['invalid_delivery_report']);
  });

  it.each([
    ['aggregated_totals', 'report_has_aggregated_totals'],
    ['notification_id', 'report_has_notification_id'],
  ])('%s in the result → warning %s', (member, code) => {
    expect(warningCodes(eventOf(envelope(deliveryReport({ [member]: 'x' }))))).toEqual([code]);
    expect(warningCodes(eventOf(envelope(deliveryReport({ [member]: null }))))).toEqual([]);
  });

  it('an unknown status is a warning, and it is still a report', () => {
    const event = eventOfKind('delivery-report', envelope(deliveryReport(), { status: 'partial' }));
    expect(event.status).toBe('partial');
    expect(warningCodes(event)).toEqual(['unknown_status']);
  });

  it.each([
    ['an unknown notification_type', deliveryReport({ notification_type: 'weekly' })],
    ['no notification_type', deliveryReport({ notification_type: undefined })],
    [
      'spend as text',
      deliveryReport({ media_buy_deliveries: [{ media_buy_id: 'm', totals: { spend: '12.50' } }] }),
    ],
    ['a delivery without media_buy_id', deliveryReport({ media_buy_deliveries: [{}] })],
    ['sequence_number as text', deliveryReport({ sequence_number: '3' })],
    ['a period without end', deliveryReport({ reporting_period: { start: 'x' } })],
    ['no result', undefined],
    ['a result that is a list', [deliveryReport()]],
  ])('%s: passed to other, warning invalid_delivery_report', (_name, result) => {
    const reading = readOk(envelope(result));
    expect(reading.event).toMatchObject({ kind: 'other', family: 'media_buy_delivery', taskId: 'task_1' });
    expect(reading.event.data).toEqual(result);
    expect(warningCodes(reading.event)).toEqual(['invalid_delivery_report']);
    expect('instant' in reading).toBe(false);
  });

  it('a report beside its envelope instead of in it is passed to other', () => {
    const payload = { ...deliveryReport(), ...toolEnvelope({ task_type: undefined, result: undefined }) };
    expect(eventOf(payload)).toMatchObject({ kind: 'other', family: 'media_buy_delivery' });
  });

  it('comes in an agent-transport data part too', () => {
    const artifacts = [
      { artifactId: 'a', parts: [{ kind: 'data', data: deliveryReport({ aggregated_totals: {} }) }] },
    ];
    const event = eventOfKind('delivery-report', { task: agentTask('TASK_STATE_COMPLETED', { artifacts }) });
    expect(event).toMatchObject({
      transport: 'agent',
      idempotencyKey: KEY,
      status: 'completed',
      sequenceNumber: 3,
    });
    expect(warningCodes(event)).toEqual(['report_has_aggregated_totals']);
    const withoutId = eventOf(agentTask('completed', { artifacts, id: undefined }));
    expect(withoutId.kind).toBe('delivery-report');
  });

  it('lets no member reach a prototype', () => {
    const text = JSON.stringify(envelope(deliveryReport())).replace(
      '"currency"',
      '"__proto__":{"polluted":1},"currency"',
    );
    const event = eventOfKind('delivery-report', text);
    expect(Object.hasOwn(event.report, '__proto__')).toBe(true);
    expect('polluted' in event.report).toBe(false);
    expect('polluted' in {}).toBe(false);
  });
});
