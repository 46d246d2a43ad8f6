import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { ERROR_MEMBERS, errorsIn } from './error-object.ts';

/** Members of an answer that are not part of a result without a member of its own. */
export const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message', 'replayed']);

/** What may stand in any answer, so that it says nothing of a result. */
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

/** Whether something of the result is there: of a media buy its id, of others any member of their own. */
export const hasResult = (members: JsonObject, taskType: string): boolean =>
  taskType.endsWith('media_buy') ? (textMember(members, 'media_buy_id') ?? '') !== '' : !isEmpty(members);

/**
 * Whether data has errors and nothing of a result (calls.md §1.9).
 * @param taskType absent: it is not known which members a result has.
 */
export function isErrorAlone(data: unknown, taskType = ''): data is JsonObject {
  if (!isJsonObject(data)) return false;
  const result = present(data, 'result');
  if (result !== undefined) return isErrorAlone(result, taskType);
  return errorsIn(data).length > 0 && !hasResult(data, taskType);
}
