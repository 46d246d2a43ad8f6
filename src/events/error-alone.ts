// Tells if an answer has only an error, or a result too (calls.md §1.9).
// Called for events, and for the answers of calls and polls.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { ERROR_MEMBERS, errorsIn } from './error-object.ts';

/** Members that belong to an answer itself and never to its result, even if the result's members are beside them. */
export const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message', 'replayed']);

/** Members that any answer may have. So none of them shows that the answer has a result. */
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
 * True if the answer has at least a part of a result. That is the id of a media buy; for other tasks, any member that
 * is not in `ENVELOPE`.
 */
export const hasResult = (members: JsonObject, taskType: string): boolean =>
  taskType.endsWith('media_buy') ? (textMember(members, 'media_buy_id') ?? '') !== '' : !isEmpty(members);

/**
 * True if the data has errors and no part of a result (calls.md §1.9).
 * @param taskType tells which members are the result. Default: any member that is not in `ENVELOPE`.
 */
export function isErrorAlone(data: unknown, taskType = ''): data is JsonObject {
  if (!isJsonObject(data)) return false;
  const result = present(data, 'result');
  if (result !== undefined) return isErrorAlone(result, taskType);
  return errorsIn(data).length > 0 && !hasResult(data, taskType);
}
