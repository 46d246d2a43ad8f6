// Tells an answer with only an error from one with a result (calls.md §1.9).
// Called while events, answers of calls and polls are read.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { ERROR_MEMBERS, errorsIn } from './error-object.ts';

/** Members of an answer that are never part of a result which has no member of its own. */
export const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message', 'replayed']);

/** Members that any answer may have, so they prove no result. */
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
 * True if part of the result is present: the id of a media buy, or for other tasks any member of their own.
 */
export const hasResult = (members: JsonObject, taskType: string): boolean =>
  taskType.endsWith('media_buy') ? (textMember(members, 'media_buy_id') ?? '') !== '' : !isEmpty(members);

/**
 * True if data has errors and nothing of a result (calls.md §1.9).
 * @param taskType if absent, the members of a result are unknown.
 */
export function isErrorAlone(data: unknown, taskType = ''): data is JsonObject {
  if (!isJsonObject(data)) return false;
  const result = present(data, 'result');
  if (result !== undefined) return isErrorAlone(result, taskType);
  return errorsIn(data).length > 0 && !hasResult(data, taskType);
}
