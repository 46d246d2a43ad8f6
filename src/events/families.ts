import { type JsonObject, isJsonObject, present, textMember } from '../codec/members.ts';

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
export function familyOf(payload: JsonObject, names: readonly string[], whole: boolean): Family | undefined {
  if (!whole && names.length > 0) return firstFamily(names);
  const said = familyNamed(payload, whole ? ENVELOPE_DISCRIMINATORS : DISCRIMINATORS);
  const family = said ?? familyOfResult(payload['result'], textMember(payload, 'task_type'));
  if (family !== undefined || whole) return family;
  const broken = present(payload, 'task_id') !== undefined || present(payload, 'status') !== undefined;
  return broken ? undefined : familyByShape(payload);
}

/** The family that a task's result, or a data part, says it belongs to. */
export function familyOfResult(result: unknown, taskType: string | undefined): Family | undefined {
  if (!isJsonObject(result)) return undefined;
  return familyNamed(result, taskType === undefined ? RESULT_DISCRIMINATORS : NAMED_RESULT_DISCRIMINATORS);
}

function familyNamed(payload: JsonObject, discriminators: readonly string[]): Family | undefined {
  return firstFamily(discriminators.map((member) => textMember(payload, member)));
}

function firstFamily(names: readonly (string | undefined)[]): Family | undefined {
  for (const name of names) {
    const family = familyNamedBy(name);
    if (family) return family;
  }
  return undefined;
}

/** What no spelling has to be undone in: nearly every `task_type`. */
const PLAIN = /^[0-9_a-z]*$/;

/** The family of a discriminator's value, e.g. of a `task_type`. */
export function familyNamedBy(said: string | undefined): Family | undefined {
  if (said === undefined) return undefined;
  if (PLAIN.test(said)) return FAMILY_BY_NAME.get(said);
  const names = said.toLowerCase().replaceAll('-', '_').split(/[./:]/);
  return names.map((name) => FAMILY_BY_NAME.get(name)).find((family) => family !== undefined);
}

/** Artifact pushes and rights revocations have no member that names them. */
function familyByShape(payload: JsonObject): Family | undefined {
  const { artifacts } = payload;
  // An agent-transport artifact has `parts`: a Task that lost its status is no artifact push.
  if (Array.isArray(artifacts) && !artifacts.some((item) => isJsonObject(item) && 'parts' in item)) {
    return 'artifact_push';
  }
  return textMember(payload, 'rights_id') === undefined ? undefined : 'revocation-notification';
}
