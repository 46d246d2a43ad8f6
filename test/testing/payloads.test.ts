import { describe, expect, test } from 'vitest';
import { detectFormat, readEvent, type TaskStatus } from '../../src/events/index.ts';
import { ConfigError } from '../../src/index.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';

const STATUSES = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const satisfies readonly TaskStatus[];

const NOW = Date.UTC(2026, 4, 6);
const samples = samplePayloads({ now: () => NOW });

function eventOf(payload: object) {
  const reading = readEvent(new TextEncoder().encode(JSON.stringify(payload)));
  if (!reading.ok) throw new Error(`${reading.code}: ${reading.detail}`);
  return reading.event;
}

describe.each(['tool', 'agent'] as const)('%s transport', (transport) => {
  test.each(STATUSES)('%s is read without a warning', (status) => {
    const payload = samples[transport](status);
    expect(detectFormat(payload)).toBe(transport);
    const event = eventOf(payload);
    expect(event).toMatchObject({
      kind: 'task',
      transport,
      status,
      idempotencyKey: payload['idempotency_key'],
      idempotencyKeySource: 'envelope',
      taskType: 'create_media_buy',
      timestamp: '2026-05-06T00:00:00.000Z',
      warnings: [],
    });
    expect(event.operationId).toMatch(/^op_/);
    expect(event.data).toBeTypeOf('object');
  });

  test('interim results are typed', () => {
    expect(eventOf(samples[transport]('working'))).toMatchObject({
      progress: { percentage: 40, total_steps: 5 },
    });
    expect(eventOf(samples[transport]('input-required'))).toMatchObject({
      inputRequest: { reason: 'APPROVAL_REQUIRED' },
    });
  });

  test('two payloads are two events; overrides replace members', () => {
    const [one, two] = [samples[transport]('working'), samples[transport]('working')];
    expect(one['idempotency_key']).not.toBe(two['idempotency_key']);
    const again = samples[transport]('working', {
      idempotency_key: one['idempotency_key'],
      context: { a: 1 },
    });
    expect(eventOf(again)).toMatchObject({ idempotencyKey: one['idempotency_key'], context: { a: 1 } });
  });
});

test.each(['scheduled', 'final', 'delayed', 'adjusted', 'window_update'] as const)(
  'a %s report is read without a warning',
  (type) => {
    const payload = samples.report(type, { sequence_number: 7 }, { operation_id: 'op' });
    expect(eventOf(payload)).toMatchObject({
      kind: 'delivery-report',
      operationId: 'op',
      sequenceNumber: 7,
      report: { notification_type: type, currency: 'USD' },
      warnings: [],
    });
  },
);

describe.each(SAMPLE_FAMILIES)('%s', (family) => {
  test('is read as its family with a typed payload and no warning', () => {
    const event = eventOf(samples.family(family, { more: 1 }));
    expect(event).toMatchObject({ kind: 'other', family, envelope: { more: 1 }, warnings: [] });
    expect(event).toHaveProperty('notification', event.envelope);
    expect(event.notificationId).toMatch(/^notification_/);
  });
});

test('a family without a sample is refused', () => {
  // @ts-expect-error no such family
  expect(() => samples.family('impairments')).toThrow(ConfigError);
});

test('ids are those passed in', () => {
  let count = 0;
  const counted = samplePayloads({ now: () => NOW, newId: () => `0000000000000000-${count++}` });
  expect(counted.tool('completed').idempotency_key).toBe('0000000000000000-1');
});
