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

/** Other spellings are found by lower case, `-` as `_`, and dotted or slashed prefixes (`rights.…`) taken apart. */
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

/** Members in which a payload that names itself nothing may still say it. Their shapes are not shown. */
const DISCRIMINATORS = ['type', 'task_type'] as const;

/** A whole task envelope says what it is by `task_type`; its `type` or `event` may be any word. */
const ENVELOPE_DISCRIMINATORS = ['event_type', 'notification_type', 'task_type'] as const;

/** The same inside a task's result, whose own `type` may be any word; so may its `event` where the task is named. */
const NAMED_RESULT_DISCRIMINATORS = ['event_type', 'notification_type'] as const;
const RESULT_DISCRIMINATORS = ['event', ...NAMED_RESULT_DISCRIMINATORS] as const;

/**
 * Which of the families of contract.md §6.12 a payload belongs to, however that is spelt; undefined for task envelopes, delivery
 * reports and all that came later. Their payloads are not task envelopes, so they need neither `task_id` nor `status`.
 * @param names what the payload calls itself.
 * @param whole it is a task envelope by its members.
 */
function familyOf(payload: JsonObject, names: readonly string[], whole: boolean): Family | undefined {
  if (!whole && names.length > 0) return firstFamily(names);
  const named = familyNamed(payload, whole ? ENVELOPE_DISCRIMINATORS : DISCRIMINATORS);
  const family = named ?? familyOfResult(payload['result'], textMember(payload, 'task_type'));
  if (family !== undefined || whole) return family;
  const broken = present(payload, 'task_id') !== undefined || present(payload, 'status') !== undefined;
  return broken ? undefined : familyByShape(payload);
}

/** The family that a task's result, or a data part, says it belongs to. */
export function familyOfResult(result: unknown, taskType: string | undefined): Family | undefined {
  if (!isJsonObject(result)) return undefined;
  const names = taskType === undefined ? RESULT_DISCRIMINATORS : NAMED_RESULT_DISCRIMINATORS;
  return familyNamed(result, names) ?? (isImpairment(result) ? 'impairment' : undefined);
}

/** An impairment in a member of its own, beside the health of its media buy, names itself nowhere. */
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

/** What no spelling has to be undone in: nearly every `task_type`. */
const PLAIN = /^[0-9_a-z]*$/;

/** The family of a discriminator's value, e.g. of a `task_type`. */
export function familyNamedBy(value: string | undefined): Family | undefined {
  if (value === undefined) return undefined;
  if (PLAIN.test(value)) return FAMILY_BY_NAME.get(value);
  const names = value.toLowerCase().replaceAll('-', '_').split(/[./:]/);
  return names.map((name) => FAMILY_BY_NAME.get(name)).find((family) => family !== undefined);
}

/** Artifact pushes and rights revocations have no member that names them. */
function familyByShape(payload: JsonObject): Family | undefined {
  const { artifacts } = payload;
  // An agent-transport artifact has `parts`: a Task that lost its status is not an artifact push.
  if (
    Array.isArray(artifacts) &&
    !artifacts.some((item) => isJsonObject(item) && present(item, 'parts') !== undefined)
  ) {
    return 'artifact_push';
  }
  return textMember(payload, 'rights_id') === undefined ? undefined : 'revocation-notification';
}

/**
 * What a body is that is none of the agent transport's (verification.md §7.7, §7.8): a task envelope, whole or broken; a
 * delivery report that lost its envelope; else a webhook of another family, which needs its key alone.
 */
export type ToolShape = 'envelope' | 'bare-result' | 'other';

/** How a body is read. */
export type Form =
  | { readonly transport: 'agent' }
  | {
      readonly transport: 'tool';
      readonly shape: ToolShape;
      /** What it calls itself, a task envelope too. */
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

/** Of what names itself nothing: it is a task's, whether or not its members have the right types. */
function hasTask(payload: JsonObject): boolean {
  return present(payload, 'task_id') !== undefined && present(payload, 'status') !== undefined;
}

/** Of what names itself. */
function isTaskEnvelope(payload: JsonObject): boolean {
  const status = textMember(payload, 'status');
  const taskId = textMember(payload, 'task_id');
  return !!taskId && status !== undefined && !isMediaBuyWord(status);
}

/** What names itself is not a broken envelope: its `task_id`, `status` and `result` may be its own. */
function shapeOfNamed(payload: JsonObject, whole: boolean): ToolShape {
  if (whole) return 'envelope';
  return hasReportType(payload) ? 'bare-result' : 'other';
}

/** A media buy by itself, with nothing of an envelope: of what has a key it may be another family's. */
const isBareResult = (payload: JsonObject): boolean =>
  textMember(payload, 'media_buy_id') !== undefined &&
  ['idempotency_key', 'task_id', 'result'].every((name) => present(payload, name) === undefined);

const TASK_MEMBERS = ['task_id', 'status', 'result'] as const;

function shapeOfNameless(payload: JsonObject): ToolShape {
  if (present(payload, 'task_id') !== undefined && Object.hasOwn(payload, 'status')) return 'envelope';
  if (isBareReport(payload) || isBareResult(payload)) return 'bare-result';
  return TASK_MEMBERS.some((name) => present(payload, name) !== undefined) ? 'envelope' : 'other';
}

/** Of a sender of the agent transport: its payloads may lack the key, and then a Task that lost its status does too. */
function isBrokenTask(payload: JsonObject, shape: ToolShape): boolean {
  if (shape === 'envelope') return true;
  return shape === 'other' && present(payload, 'idempotency_key') === undefined;
}
