// Tells if an answer has only an error, or a result too (calls.md §1.9).
// Called while events, answers of calls and polls are read.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { ERROR_MEMBERS, errorsIn } from './error-object.ts';

/** Members of an answer that never belong to a result, even if the result's members are at the same level. */
export const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message', 'replayed']);

/** Members that any answer may have, so their presence does not show that there is a result. */
const ENVELOPE: ReadonlySet<string> = new Set([
  ...BESIDE,
  ...ERROR_MEMBERS,
  'isError',
  'context_id',
  'task_type',
  'timestamp',
  'adcp_version',
  'proto_version',
  'ext',
]);

export const isEmpty = (members: JsonObject): boolean =>
  Object.entries(members).every(([name, value]) => value === null || ENVELOPE.has(name));

/**
 * True if there is at least a part of a result: for a media buy its id, for other tasks any member of the result.
 */
export const hasResult = (members: JsonObject, taskType: string): boolean =>
  taskType.endsWith('media_buy') ? (textMember(members, 'media_buy_id') ?? '') !== '' : !isEmpty(members);

/**
 * True if the data has errors and no part of a result (calls.md §1.9).
 * @param taskType without it, the members of the result are not known.
 */
export function isErrorAlone(data: unknown, taskType = ''): data is JsonObject {
  if (!isJsonObject(data)) return false;
  const result = present(data, 'result');
  if (result !== undefined) return isErrorAlone(result, taskType);
  return errorsIn(data).length > 0 && !hasResult(data, taskType);
}
