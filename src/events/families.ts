// Decides the form and family of a body that names itself, or has the shape of a known family
// (verification.md §7.6 to §7.8).
// Called by `reading.ts` for every body, and by `agent.ts` for results.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { hasReportType, isBareReport } from './delivery-report.ts';
import type { Transport } from './event.ts';
import { detectFormat, familyName, namesOf } from './format.ts';
import { isMediaBuyWord } from './status.ts';

/** The families that contract.md §6.12 names. */
type Family =
  | 'impairment'
  | 'collection_list_changed'
  | 'property_list_changed'
  | 'revocation-notification'
  | 'artifact_push';

/**
 * The names of each family. Other spellings are found by lower case, `-` as `_`, and without dotted or
 * slashed prefixes (`rights.…`).
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
 * Members that may name the family of a payload without another name. The contract shows no shapes for these
 * payloads.
 */
const DISCRIMINATORS = ['type', 'task_type'] as const;

/** Members that name a family in a whole task envelope; its `type` or `event` may be any word. */
const ENVELOPE_DISCRIMINATORS = ['event_type', 'notification_type', 'task_type'] as const;

/**
 * Members that name a family in a task's result. Its own `type` may be any word; so may its `event` if the
 * task is named.
 */
const NAMED_RESULT_DISCRIMINATORS = ['event_type', 'notification_type'] as const;
const RESULT_DISCRIMINATORS = ['event', ...NAMED_RESULT_DISCRIMINATORS] as const;

/**
 * The family of contract.md §6.12 that a payload belongs to, in any spelling. Undefined for task envelopes,
 * delivery reports and all later families. Such payloads are no task envelopes, so they need neither
 * `task_id` nor `status`.
 * @param names names that the payload gives itself.
 * @param whole true if it has the members of a task envelope.
 */
function familyOf(payload: JsonObject, names: readonly string[], whole: boolean): Family | undefined {
  if (!whole && names.length > 0) return firstFamily(names);
  const named = familyNamed(payload, whole ? ENVELOPE_DISCRIMINATORS : DISCRIMINATORS);
  const family = named ?? familyOfResult(payload['result'], textMember(payload, 'task_type'));
  if (family !== undefined || whole) return family;
  const broken = present(payload, 'task_id') !== undefined || present(payload, 'status') !== undefined;
  return broken ? undefined : familyByShape(payload);
}

/** The family that a task's result, or a data part, names. */
export function familyOfResult(result: unknown, taskType: string | undefined): Family | undefined {
  if (!isJsonObject(result)) return undefined;
  const names = taskType === undefined ? RESULT_DISCRIMINATORS : NAMED_RESULT_DISCRIMINATORS;
  return familyNamed(result, names) ?? (isImpairment(result) ? 'impairment' : undefined);
}

/** True for an impairment in a member of its own, beside the health of its media buy: it has no name. */
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

/** Matches text without anything to normalise: nearly every `task_type`. */
const PLAIN = /^[0-9_a-z]*$/;

/** The family of a discriminator's value, e.g. of a `task_type`. */
export function familyNamedBy(value: string | undefined): Family | undefined {
  if (value === undefined) return undefined;
  if (PLAIN.test(value)) return FAMILY_BY_NAME.get(value);
  const names = value.toLowerCase().replaceAll('-', '_').split(/[./:]/);
  return names.map((name) => FAMILY_BY_NAME.get(name)).find((family) => family !== undefined);
}

/** The family of artifact pushes and rights revocations, which have no member that names them. */
function familyByShape(payload: JsonObject): Family | undefined {
  const { artifacts } = payload;
  // An agent-transport artifact has `parts`: a Task that lost its status is no artifact push.
  if (
    Array.isArray(artifacts) &&
    !artifacts.some((item) => isJsonObject(item) && present(item, 'parts') !== undefined)
  ) {
    return 'artifact_push';
  }
  return textMember(payload, 'rights_id') === undefined ? undefined : 'revocation-notification';
}

/**
 * Shape of a body that is not of the agent transport (verification.md §7.7, §7.8). `envelope`: a task
 * envelope, whole or broken. `bare-result`: a delivery report without its envelope. `other`: a webhook of
 * another family, which needs only its key.
 */
export type ToolShape = 'envelope' | 'bare-result' | 'other';

/** The form by which a body is read. */
export type Form =
  | { readonly transport: 'agent' }
  | {
      readonly transport: 'tool';
      readonly shape: ToolShape;
      /** The name that the body gives itself, even a task envelope. */
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

/** True if a body without a name is a task's, even if its members have wrong types. */
function hasTask(payload: JsonObject): boolean {
  return present(payload, 'task_id') !== undefined && present(payload, 'status') !== undefined;
}

/** True if a body with a name is a whole task envelope. */
function isTaskEnvelope(payload: JsonObject): boolean {
  const status = textMember(payload, 'status');
  const taskId = textMember(payload, 'task_id');
  return !!taskId && status !== undefined && !isMediaBuyWord(status);
}

/**
 * The shape of a body with a name, which is never a broken envelope: its `task_id`, `status` and `result` may
 * be its own.
 */
function shapeOfNamed(payload: JsonObject, whole: boolean): ToolShape {
  if (whole) return 'envelope';
  return hasReportType(payload) ? 'bare-result' : 'other';
}

/**
 * True for a media buy by itself, without an envelope's members: a body with a key may be another family's.
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
 * True for a broken Task from a sender of the agent transport. Its payloads may lack the key, and a Task that
 * lost its status may too.
 */
function isBrokenTask(payload: JsonObject, shape: ToolShape): boolean {
  if (shape === 'envelope') return true;
  return shape === 'other' && present(payload, 'idempotency_key') === undefined;
}
