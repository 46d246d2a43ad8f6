// Decides the form and family (kind of notification) of a body, by the names in it or by its shape (verification.md
// §7.6 to §7.8).
// Called by `reading.ts` for every body, and by `agent.ts` for results.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { hasReportType, isBareReport } from './delivery-report.ts';
import type { Transport } from './event.ts';
import { detectFormat, familyName, namesOf } from './format.ts';
import { isMediaBuyWord } from './status.ts';

/** The notification families that contract.md §6.12 names. */
type Family =
  | 'impairment'
  | 'collection_list_changed'
  | 'property_list_changed'
  | 'revocation-notification'
  | 'artifact_push';

/**
 * The names by which a body may name each family. Names are compared in lower case, with `-` replaced by `_`, and
 * without dotted or slashed prefixes (`rights.…`).
 */
const NAMES: Record<Family, readonly string[]> = {
  impairment: ['impairment'],
  collection_list_changed: ['collection_list_changed'],
  property_list_changed: ['property_list_changed'],
  'revocation-notification': ['revocation_notification', 'rights_revocation_notification'],
  artifact_push: [
    'artifact',
    'artifacts',
    'artifact_push',
    'artifact_push_webhook',
    'artifact_webhook',
    'artifact_webhook_payload',
  ],
};

const FAMILY_BY_NAME: ReadonlyMap<string, Family> = new Map(
  Object.entries(NAMES).flatMap(([family, names]) => names.map((name) => [name, family as Family])),
);

/**
 * Members that may name the family of a payload that has none of `notification_type`, `event` and `event_type`. Both
 * are tried, because the contract does not show the shape of such payloads.
 */
const DISCRIMINATORS = ['type', 'task_type'] as const;

/**
 * Members that may name a family in a complete task envelope. Its members `type` and `event` may contain any word, so
 * no family is read from them.
 */
const ENVELOPE_DISCRIMINATORS = ['event_type', 'notification_type', 'task_type'] as const;

/**
 * Members that may name a family in a task's result. The result's `type` may contain any word, so no family is read
 * from it. The same holds for the result's `event` if the envelope has a `task_type`.
 */
const NAMED_RESULT_DISCRIMINATORS = ['event_type', 'notification_type'] as const;
const RESULT_DISCRIMINATORS = ['event', ...NAMED_RESULT_DISCRIMINATORS] as const;

/**
 * Returns the family of contract.md §6.12 that a payload belongs to, in any spelling of its name. Undefined for tasks,
 * delivery reports and all other families. Payloads of these families are no task envelopes, so they need neither
 * `task_id` nor `status`.
 * @param names the names that the payload gives itself.
 * @param whole true if the payload has the members of a task envelope.
 */
function familyOf(payload: JsonObject, names: readonly string[], whole: boolean): Family | undefined {
  if (!whole && names.length > 0) return firstFamily(names);
  const named = familyNamed(payload, whole ? ENVELOPE_DISCRIMINATORS : DISCRIMINATORS);
  const family = named ?? familyOfResult(payload['result'], textMember(payload, 'task_type'));
  if (family !== undefined || whole) return family;
  const broken = present(payload, 'task_id') !== undefined || present(payload, 'status') !== undefined;
  return broken ? undefined : familyByShape(payload);
}

/** Returns the family that a task's result, or a data part, names; undefined if it names none. */
export function familyOfResult(result: unknown, taskType: string | undefined): Family | undefined {
  if (!isJsonObject(result)) return undefined;
  const names = taskType === undefined ? RESULT_DISCRIMINATORS : NAMED_RESULT_DISCRIMINATORS;
  return familyNamed(result, names) ?? (isImpairment(result) ? 'impairment' : undefined);
}

/**
 * True if a result that names no family is an impairment. The result then has the impairment in the member
 * `impairment`, and beside it the `health` of the media buy.
 */
function isImpairment(result: JsonObject): boolean {
  const { impairment, health } = result;
  return typeof health === 'string' && isJsonObject(impairment) && !!textMember(impairment, 'impairment_id');
}

function familyNamed(payload: JsonObject, discriminators: readonly string[]): Family | undefined {
  for (const member of discriminators) {
    const family = familyNamedBy(textMember(payload, member));
    if (family) return family;
  }
  return undefined;
}

function firstFamily(names: readonly string[]): Family | undefined {
  for (const name of names) {
    const family = familyNamedBy(name);
    if (family) return family;
  }
  return undefined;
}

/** Matches a name that needs no conversion, which nearly every `task_type` is. */
const PLAIN = /^[0-9_a-z]*$/;

/** Returns the family that a member's value names, e.g. the value of `task_type`. */
export function familyNamedBy(value: string | undefined): Family | undefined {
  if (value === undefined) return undefined;
  if (PLAIN.test(value)) return FAMILY_BY_NAME.get(value);
  const names = value.toLowerCase().replaceAll('-', '_').split(/[./:]/);
  return names.map((name) => FAMILY_BY_NAME.get(name)).find((family) => family !== undefined);
}

/**
 * Recognises artifact pushes and rights revocations by their members, because no member names their family. Undefined
 * for other payloads.
 */
function familyByShape(payload: JsonObject): Family | undefined {
  const { artifacts } = payload;
  // If the artifacts have `parts`, they are those of the agent transport. The body is then a Task without its status,
  // not an artifact push.
  if (
    Array.isArray(artifacts) &&
    !artifacts.some((item) => isJsonObject(item) && present(item, 'parts') !== undefined)
  ) {
    return 'artifact_push';
  }
  return textMember(payload, 'rights_id') === undefined ? undefined : 'revocation-notification';
}

/**
 * Shape of a body that is not of the agent transport (verification.md §7.7, §7.8). `envelope`: a task envelope,
 * complete or not. `bare-result`: a delivery report without its envelope. `other`: a notification, for which only the
 * idempotency key is required.
 */
export type ToolShape = 'envelope' | 'bare-result' | 'other';

/** The transport and shape of a body, which decide how it is read. */
export type Form =
  | { readonly transport: 'agent' }
  | {
      readonly transport: 'tool';
      readonly shape: ToolShape;
      /** The name of the family, as the body states it. A task envelope may state one too. */
      readonly family: string | undefined;
    };

const AGENT: Form = { transport: 'agent' };

export function formOf(payload: JsonObject, known: Transport | undefined): Form {
  const shown = detectFormat(payload);
  if (shown === 'agent') return AGENT;
  const names = namesOf(payload);
  const whole = names.length === 0 ? hasTask(payload) : isTaskEnvelope(payload);
  const family = familyOf(payload, names, whole);
  if (family !== undefined) return { transport: 'tool', shape: 'other', family };
  const name = names.find((one) => one !== '') ?? names[0];
  const shape = name === undefined ? shapeOfNameless(payload) : shapeOfNamed(payload, whole);
  if (known === 'agent' && name === undefined && shown === undefined && isBrokenTask(payload, shape))
    return AGENT;
  return { transport: 'tool', shape, family: familyName(name) };
}

/** True if a body that names no family is meant as a task's, even if its members have wrong types. */
function hasTask(payload: JsonObject): boolean {
  return present(payload, 'task_id') !== undefined && present(payload, 'status') !== undefined;
}

/** True if a body that names a family is a complete task envelope all the same. */
function isTaskEnvelope(payload: JsonObject): boolean {
  const status = textMember(payload, 'status');
  const taskId = textMember(payload, 'task_id');
  return !!taskId && status !== undefined && !isMediaBuyWord(status);
}

/**
 * Returns the shape of a body that names a family. It is never an incomplete task envelope, because `task_id`, `status`
 * and `result` may have another meaning in that family.
 */
function shapeOfNamed(payload: JsonObject, whole: boolean): ToolShape {
  if (whole) return 'envelope';
  return hasReportType(payload) ? 'bare-result' : 'other';
}

/**
 * True for a media buy without an envelope. A body with an idempotency key is excluded, because it may be a
 * notification.
 */
const isBareResult = (payload: JsonObject): boolean =>
  textMember(payload, 'media_buy_id') !== undefined &&
  ['idempotency_key', 'task_id', 'result'].every((name) => present(payload, name) === undefined);

const TASK_MEMBERS = ['task_id', 'status', 'result'] as const;

function shapeOfNameless(payload: JsonObject): ToolShape {
  if (present(payload, 'task_id') !== undefined && Object.hasOwn(payload, 'status')) return 'envelope';
  if (isBareReport(payload) || isBareResult(payload)) return 'bare-result';
  return TASK_MEMBERS.some((name) => present(payload, name) !== undefined) ? 'envelope' : 'other';
}

/**
 * True if a body is meant as a Task of the agent transport, but is incomplete. Payloads of that transport may lack the
 * idempotency key, so a Task without its status may lack the key too.
 */
function isBrokenTask(payload: JsonObject, shape: ToolShape): boolean {
  if (shape === 'envelope') return true;
  return shape === 'other' && present(payload, 'idempotency_key') === undefined;
}
