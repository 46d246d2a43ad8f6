import { type ReadOptions, readEvent } from '../../src/events/index.ts';
import type { AssembledEvent, Event, WarningCode } from '../../src/events/index.ts';

export const KEY = '0b8f9a52-6f5e-4c68-9d0e-3c3f0f0a7d11';
export const TIMESTAMP = '2026-03-01T12:00:00Z';

type Members = Readonly<Record<string, unknown>>;

/** A whole tool-transport envelope; a member given as undefined is left out. */
export function toolEnvelope(members: Members = {}): Members {
  return {
    idempotency_key: KEY,
    task_id: 'task_1',
    operation_id: 'op_1',
    task_type: 'create_media_buy',
    domain: 'media-buy',
    status: 'completed',
    timestamp: TIMESTAMP,
    message: 'Done',
    result: { media_buy_id: 'mb_1' },
    ...members,
  };
}

/** A bare agent-transport Task. */
export function agentTask(state: string, members: Members = {}): Members {
  return {
    id: 'task_1',
    contextId: 'ctx_1',
    status: { state, timestamp: TIMESTAMP },
    metadata: { idempotency_key: KEY },
    ...members,
  };
}

/** The event that both transports' envelopes make of one completed task; the members in which they differ are added. */
export function completedTask(members: Members): Members {
  return {
    kind: 'task',
    source: 'webhook',
    idempotencyKey: KEY,
    taskId: 'task_1',
    status: 'completed',
    operationId: 'op_1',
    taskType: 'create_media_buy',
    timestamp: TIMESTAMP,
    message: 'Done',
    data: { media_buy_id: 'mb_1' },
    context: { trace: 'x' },
    notificationId: 'n_1',
    reemission: false,
    warnings: [],
    ...members,
  };
}

export function deliveryReport(members: Members = {}): Members {
  return {
    notification_type: 'scheduled',
    sequence_number: 3,
    reporting_period: { start: '2026-03-01T00:00:00Z', end: '2026-03-02T00:00:00Z' },
    currency: 'USD',
    media_buy_deliveries: [
      {
        media_buy_id: 'mb_1',
        status: 'active',
        totals: { impressions: 1000, spend: 12.5, clicks: 3 },
        by_package: [{ package_id: 'p1', spend: 12.5 }],
      },
    ],
    ...members,
  };
}

export function encode(payload: unknown): Uint8Array {
  return new TextEncoder().encode(typeof payload === 'string' ? payload : JSON.stringify(payload));
}

export function readOk(payload: unknown, options?: ReadOptions): AssembledEvent {
  const reading = readEvent(encode(payload), options);
  if (!reading.ok) throw new Error(`${reading.code}: ${reading.detail}`);
  return reading;
}

export function eventOf(payload: unknown, options?: ReadOptions): Event {
  return readOk(payload, options).event;
}

/** The event, which has to be of that kind. */
export function eventOfKind<K extends Event['kind']>(
  kind: K,
  payload: unknown,
  options?: ReadOptions,
): Extract<Event, { kind: K }> {
  const event = eventOf(payload, options);
  if (event.kind !== kind) throw new Error(`is of kind ${event.kind}, not ${kind}`);
  return event as Extract<Event, { kind: K }>;
}

/** The code of a refusal; `ok` where there is none. */
export function codeOf(payload: unknown, options?: ReadOptions): string {
  const reading = readEvent(encode(payload), options);
  return reading.ok ? 'ok' : reading.code;
}

export function warningCodes(event: Event): readonly WarningCode[] {
  return event.warnings.map(({ code }) => code);
}
