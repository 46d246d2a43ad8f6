// Reads a tool-transport envelope (MCP), or a notification, into a draft of an event (verification.md §7.1 to §7.8).
// Called by `reading.ts` for bodies of that form.

import { isBareReport, isReportShaped } from './delivery-report.ts';
import type { Form, ToolShape } from './families.ts';
import { type Draft, type EnvelopeFailure, envelopeFailure } from './envelope.ts';
import type { EventWarning } from './event.ts';
import { type JsonObject, isJsonObject, present, textMember } from '../codec/members.ts';
import type { Edition } from '../shared/editions.ts';
import { IDEMPOTENCY_KEY } from './schemas.ts';
import { isMediaBuyWord, taskStatus } from './status.ts';
import { eventWarning } from './warnings.ts';

/**
 * For each shape of a body, the function that finds its fault. A result without an envelope gets one failure, even if
 * it also lacks the idempotency key.
 */
const PROBLEMS: Record<ToolShape, (payload: JsonObject) => EnvelopeFailure | undefined> = {
  envelope: envelopeProblem,
  'bare-result': () =>
    envelopeFailure('missing_envelope_fields', 'a result or a report without its envelope'),
  other: keyProblem,
};

/** Reads a tool-transport envelope, or a notification (verification.md §7.1 to §7.8). */
export function readTool(
  payload: JsonObject,
  { shape, family }: Extract<Form, { transport: 'tool' }>,
  edition: Edition | undefined,
): Draft | EnvelopeFailure {
  const failure = PROBLEMS[shape](payload);
  if (failure) return failure;
  const taskEnvelope = shape === 'envelope';
  const taskType = textMember(payload, 'task_type');
  const status = textMember(payload, 'status');
  const data = toolData(payload);
  return {
    ok: true,
    transport: 'tool',
    envelope: payload,
    idempotencyKey: textMember(payload, 'idempotency_key') ?? '',
    idempotencyKeySource: 'envelope',
    data,
    status,
    taskStatus: taskStatus(status),
    taskId: textMember(payload, 'task_id'),
    operationId: textMember(payload, 'operation_id'),
    taskType,
    timestamp: textMember(payload, 'timestamp'),
    message: textMember(payload, 'message'),
    context: payload['context'],
    contextId: undefined,
    notificationId: notificationId(payload, data),
    taskEnvelope,
    family,
    reportShaped: isReportShaped(taskType, data) || isBareReport(payload),
    warnings: taskEnvelope ? absences(payload, edition) : [],
  };
}

export function toolData(payload: JsonObject): unknown {
  return payload['result'];
}

/** Returns a failure if `idempotency_key` is missing or not valid; otherwise undefined. */
export function keyProblem(payload: JsonObject): EnvelopeFailure | undefined {
  const key = present(payload, 'idempotency_key');
  if (key === undefined) {
    return envelopeFailure('missing_idempotency_key', 'the envelope has no idempotency_key');
  }
  return isKey(key) ? undefined : badKey();
}

export function isKey(key: unknown): key is string {
  return typeof key === 'string' && IDEMPOTENCY_KEY.test(key);
}

export function badKey(): EnvelopeFailure {
  return envelopeFailure(
    'invalid_envelope',
    'idempotency_key is not a string of 16 to 255 characters of [A-Za-z0-9_.:-]',
  );
}

/** Returns the first fault of a task envelope: of the idempotency key, of `task_id`, then of `status`. */
function envelopeProblem(payload: JsonObject): EnvelopeFailure | undefined {
  const key = keyProblem(payload);
  if (key) return key;
  const taskId = present(payload, 'task_id');
  if (taskId === undefined || !Object.hasOwn(payload, 'status')) {
    return envelopeFailure('missing_envelope_fields', 'the envelope lacks task_id or status');
  }
  if (typeof taskId !== 'string' || taskId === '') {
    return envelopeFailure('invalid_envelope', 'task_id is not a string, or empty');
  }
  return statusProblem(payload['status']);
}

function statusProblem(status: unknown): EnvelopeFailure | undefined {
  if (typeof status !== 'string') return envelopeFailure('invalid_envelope', 'status is not a string');
  return isMediaBuyWord(status)
    ? envelopeFailure('invalid_envelope_status', `status is a media buy's (${status}), not a task's`)
    : undefined;
}

/** Returns the notification's id, from the top level or else from `result` (verification.md §7.30). */
function notificationId(payload: JsonObject, result: unknown): string | undefined {
  return (
    textMember(payload, 'notification_id') ??
    (isJsonObject(result) ? textMember(result, 'notification_id') : undefined)
  );
}

/** Returns warnings about members of a task envelope that are expected but not required, and are absent. */
function absences(payload: JsonObject, edition: Edition | undefined): readonly EventWarning[] {
  const warnings: EventWarning[] = [];
  const isExpected = edition?.operationId !== 'optional';
  if (isExpected && textMember(payload, 'operation_id') === undefined)
    warnings.push(eventWarning('missing_operation_id'));
  if (textMember(payload, 'task_type') === undefined) warnings.push(eventWarning('missing_task_type'));
  const timestamp = present(payload, 'timestamp');
  if (timestamp === undefined) warnings.push(eventWarning('missing_timestamp'));
  else if (typeof timestamp !== 'string') warnings.push(eventWarning('invalid_timestamp'));
  return warnings;
}
