// Reads an agent-transport payload (A2A) into a draft of an event (verification.md §7.12 to §7.22).
// Called by `reading.ts` for bodies of that form.

import { type AgentData, agentData, partsOf, stateOf } from './agent-data.ts';
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { isReportShaped } from './delivery-report.ts';
import { type Draft, type EnvelopeFailure, envelopeFailure } from './envelope.ts';
import { familyNamedBy, familyOfResult } from './families.ts';
import { type AgentForm, agentPayload, agentTaskId, hasState } from './format.ts';
import { taskStatus } from './status.ts';
import { isErrorAlone } from './error-alone.ts';
import { innerTaskIn } from './task-word.ts';
import { badKey, isKey } from './tool.ts';
import { eventWarning } from './warnings.ts';

/** Returns the first text in the parts of a message, for `event.message`. */
function firstText(message: unknown): string | undefined {
  const part = partsOf(message).find(({ text }) => typeof text === 'string');
  return part?.['text'] as string | undefined;
}

/**
 * Reads an agent-transport payload (verification.md §7.12, §7.14 to §7.19, §7.22).
 * @param hash returns the SHA-256 of the raw body in hex. It becomes the idempotency key if the payload has none.
 */
export function readAgent(payload: JsonObject, hash: () => string): Draft | EnvelopeFailure {
  const found = agentPayload(payload);
  if (found === undefined) return unreadable(payload);
  if (found === 'malformed') {
    return envelopeFailure('invalid_envelope', 'the agent-transport payload is wrapped more than once');
  }
  const { form, body } = found;
  const key = keyOf(payload, body, hash);
  if ('ok' in key) return key;
  // A message or an artifact has no task state. The form (`message` or `artifactUpdate`) is then the event's family.
  const family = hasState(form) ? undefined : form;
  const status = family === undefined ? stateOf(body['status']) : undefined;
  if (family === undefined && status === undefined) return unreadable(body);
  const sources = layers(payload, body);
  const extracted = agentData(found);
  const taskType = textIn(sources, 'task_type');
  const told = taskTold(body, status, extracted.data, taskType);
  const otherFamily = family ?? familyNamedBy(taskType) ?? familyOfResult(extracted.data, taskType);
  return {
    ok: true,
    transport: 'agent',
    envelope: payload,
    ...key,
    data: extracted.data,
    ...told,
    operationId: textIn(sources, 'operation_id'),
    taskType,
    ...statusMembers(form, body),
    context: sources.find((source) => Object.hasOwn(source, 'context'))?.['context'],
    contextId: textMember(body, 'contextId'),
    notificationId: textIn(sources, 'notification_id'),
    taskEnvelope: otherFamily === undefined,
    family: otherFamily,
    // If the state is unknown, no data is extracted, so the payload cannot be recognised as a delivery report.
    reportShaped: told.taskStatus !== undefined && isReportShaped(taskType, extracted.data),
    warnings: warningsOf(key, extracted, body),
  };
}

/**
 * Returns the status and id of the task that the payload reports. That is the Task itself or, once the Task is
 * completed, a task in the Task's data (calls.md §1.1). A completed Task whose data has only an error counts as failed
 * (calls.md §1.9).
 */
function taskTold(
  body: JsonObject,
  state: string | undefined,
  data: unknown,
  taskType: string | undefined,
): Pick<Draft, 'status' | 'taskStatus' | 'taskId'> {
  const taskId = agentTaskId(body);
  if (state !== 'completed') return { status: state, taskStatus: taskStatus(state), taskId };
  const inner = innerTaskIn(body, data, taskType);
  if (inner) return { status: inner.status, taskStatus: inner.status, taskId: inner.taskId ?? taskId };
  const status = isErrorAlone(data, taskType) ? 'failed' : state;
  return { status, taskStatus: status, taskId };
}

type Key = Pick<Draft, 'idempotencyKey' | 'idempotencyKeySource'>;

/**
 * Returns the objects in which members are searched, in this order: the posted payload, the body inside its wrapper,
 * the body's `metadata`, the payload's `metadata`.
 */
function layers(payload: JsonObject, body: JsonObject): readonly JsonObject[] {
  return [payload, body, ...metadataOf(body), ...metadataOf(payload)];
}

function metadataOf(payload: JsonObject): readonly JsonObject[] {
  const { metadata } = payload;
  return isJsonObject(metadata) ? [metadata] : [];
}

function textIn(sources: readonly JsonObject[], name: string): string | undefined {
  for (const source of sources) {
    const value = textMember(source, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/**
 * Returns the idempotency key, or a failure if the key does not match the contract's pattern. If the payload has no
 * key, the hash of the raw body is the key.
 */
function keyOf(payload: JsonObject, body: JsonObject, hash: () => string): Key | EnvelopeFailure {
  const top = present(payload, 'idempotency_key') ?? present(body, 'idempotency_key');
  const metadata = [...metadataOf(body), ...metadataOf(payload)].map((source) =>
    present(source, 'idempotency_key'),
  );
  const key = top ?? metadata.find((value) => value !== undefined);
  if (key === undefined) return { idempotencyKey: hash(), idempotencyKeySource: 'derived' };
  if (!isKey(key)) return badKey();
  return { idempotencyKey: key, idempotencyKeySource: top === undefined ? 'metadata' : 'envelope' };
}

/** Returns the failure for a body without a usable status: the status or its state is absent, or has a wrong type. */
function unreadable(body: JsonObject): EnvelopeFailure {
  const status = present(body, 'status');
  return status === undefined || (isJsonObject(status) && present(status, 'state') === undefined)
    ? envelopeFailure('missing_envelope_fields', 'the agent-transport payload has no status with a state')
    : envelopeFailure('invalid_envelope', 'status is not an object whose state is a string');
}

function statusMembers(form: AgentForm, body: JsonObject): Pick<Draft, 'timestamp' | 'message'> {
  const { status } = body;
  if (!isJsonObject(status)) {
    return { timestamp: undefined, message: form === 'message' ? firstText(body) : undefined };
  }
  return { timestamp: textMember(status, 'timestamp'), message: firstText(status['message']) };
}

function warningsOf(key: Key, { wrappedResponse, later }: AgentData, body: JsonObject): Draft['warnings'] {
  const { status } = body;
  const timestamp = isJsonObject(status) ? present(status, 'timestamp') : undefined;
  return [
    ...(key.idempotencyKeySource === 'derived' ? [eventWarning('derived_idempotency_key')] : []),
    ...(wrappedResponse ? [eventWarning('wrapped_response')] : []),
    ...(later ? [eventWarning('later_artifact')] : []),
    ...(timestamp !== undefined && typeof timestamp !== 'string' ? [eventWarning('invalid_timestamp')] : []),
  ];
}
