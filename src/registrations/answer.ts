// Reads the answers of sellers, for both transports: the task, the result, the errors (calls.md §1, §2). Registrations
// use it for calls; poller and reconciler for their requests.
import { isJsonObject, type JsonObject, present, textMember, withoutNulls } from '../codec/members.ts';
import { utf8 } from '../codec/encoding.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { textOf } from '../shared/errors.ts';
import { type AgentData, agentData, dataParts, partsOf, stateOf } from '../events/agent-data.ts';
import { BESIDE, hasResult, isEmpty, isErrorAlone } from '../events/error-alone.ts';
import { isRecovery, recoveryOfCode } from '../events/error-codes.ts';
import { errorsIn, errorsOf, type ReportedError } from '../events/error-object.ts';
import type { TaskStatus } from '../events/event.ts';
import { agentPayload } from '../events/format.ts';
import { taskStatus } from '../events/status.ts';
import { innerTaskIn, taskWordIn } from '../events/task-word.ts';
import { RegistrationError } from './registrations-errors.ts';
import type { SellerAnswer } from './operation.ts';
import { reportedText, SellerError, sellerErrorOf, sellerText, TaskUnknownError } from './seller-error.ts';
import { isError, isPlainObject } from '../shared/realms.ts';

export {
  SellerBusyError,
  SellerError,
  type SellerErrorCode,
  type SellerErrorOptions,
  sellerText,
  TaskUnknownError,
  TOO_MANY_REQUESTS,
  waitMs,
} from './seller-error.ts';

const membersOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** True if the result of a tool says `isError`. */
export function isFailedTool(raw: unknown): boolean {
  return membersOf(raw)['isError'] === true;
}

/** The largest number of parts of a tool's content that are read. */
const MOST_PARTS = 16;
/** The largest number of characters of a tool's texts, together, that are parsed as JSON in search of an object. */
const MAX_PARSED = 1_048_576;

export function textsIn(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return [];
  return content.slice(0, MOST_PARTS).flatMap((part) => textIn(membersOf(part)['text']) ?? []);
}

/** Returns the texts that have at most `MAX_PARSED` characters together. A text that would exceed that is left out. */
export function parsableTexts(texts: readonly string[]): readonly string[] {
  let left = MAX_PARSED;
  return texts.filter(({ length }) => {
    const isShort = length <= left;
    if (isShort) left -= length;
    return isShort;
  });
}

const textsOf = (raw: unknown): readonly string[] => textsIn(present(membersOf(raw), 'content'));

/** Returns the JSON object that a tool's result or an agent's message wraps. Any other answer is returned unchanged. */
export function unwrapped(answer: unknown): unknown {
  const structured = present(membersOf(answer), 'structuredContent');
  if (typeof structured === 'object') return structured;
  if (isFailedTool(answer)) return objectInTexts(answer) ?? answer;
  const layers = layersOf(answer);
  const message = [...layers, ...layers.map((layer) => membersOf(layer['message']))].find(isMessage);
  return message ? (dataParts(message)[0] ?? message) : answer;
}

function objectInTexts(raw: unknown): JsonObject | undefined {
  for (const text of parsableTexts(textsOf(raw))) {
    const object = objectIn(text);
    if (object) return object;
  }
  return undefined;
}

function objectIn(text: string): JsonObject | undefined {
  const parsed = parseStrictObject(utf8(text));
  return parsed.ok ? parsed.value : undefined;
}

/** True for a message of the agent transport (A2A). Such a message only wraps a result, which is its data part. */
function isMessage(layer: JsonObject): boolean {
  return textIn(layer['messageId']) !== undefined && partsOf(layer).length > 0;
}

/** Returns the objects in an answer that may be an A2A Task or message: itself, `result`, `task`, `statusUpdate`. */
function layersOf(answer: unknown): readonly JsonObject[] {
  const outer = membersOf(answer);
  const result = membersOf(outer['result']);
  const inner = [outer, result].flatMap(({ task, statusUpdate }) => [task, statusUpdate]);
  return [outer, result, ...inner.map(membersOf)];
}

/** A Task of the agent transport (A2A) that was found in an answer. */
interface AgentTask {
  readonly status: TaskStatus;
  readonly body: JsonObject;
  readonly taskId: string | undefined;
  readonly data: unknown;
  readonly extracted: AgentData;
}

function agentTaskIn(answer: unknown): AgentTask | undefined {
  for (const body of layersOf(answer)) {
    const status = taskStatus(stateOf(body['status']));
    if (status === undefined) continue;
    const taskId = textIn(body['taskId']) ?? textIn(body['id']);
    const extracted = agentData({ form: 'task', body });
    return { status, body, taskId, data: extracted.data, extracted };
  }
  return undefined;
}

/**
 * Returns the data part of an agent's answer, as the protocol defines it: in the first artifact or the status message.
 * Data of later artifacts, or inside a second wrapping, is not read.
 */
export function agentAnswerData(raw: unknown): Pick<AgentData, 'data' | 'wrappedResponse'> {
  const isMalformed = isJsonObject(raw) && agentPayload(raw) === 'malformed';
  const found = isMalformed ? undefined : agentTaskIn(raw)?.extracted;
  if (!found || found.later === 'taken') return { data: undefined, wrappedResponse: false };
  return found;
}

/** An unwrapped answer. `body`: the data of a completed Task (calls.md §1.1), otherwise the answer itself. */
interface Opened {
  readonly body: unknown;
  readonly task?: AgentTask;
}

function opened(raw: unknown, taskType: string): Opened {
  const answer = unwrapped(raw);
  const task = agentTaskIn(answer);
  if (!task) return { body: withoutLayer(answer, taskType) };
  return { body: task.status === 'completed' ? withoutLayer(task.data, taskType) : answer, task };
}

/** Returns the answer. An error that is alone in its `result` is moved up beside `status` (calls.md §1.9). */
function withoutLayer(answer: unknown, taskType: string): unknown {
  const { result, ...members } = membersOf(answer);
  return isErrorAlone(result, taskType) ? { ...members, ...result } : answer;
}

/** Returns the errors in an answer. The first of them that has a code or a `recovery` counts (calls.md §2.3). */
export function reportedErrors(raw: unknown, taskType: string): readonly ReportedError[] {
  const { body, task } = opened(raw, taskType);
  const found = [...errorsIn(membersOf(body)), ...(task ? errorsInTask(task) : [])];
  if (found.length > 0 || !isFailedTool(raw)) return found;
  const inTexts = parsableTexts(textsOf(raw)).flatMap((text) => errorsIn(objectIn(text) ?? {}));
  return inTexts.length > 0 ? inTexts : errorsOf(textsOf(raw).join(' '));
}

/** Returns the errors in a Task's data, or else the failures (`FATAL`) in the data parts of artifacts and message. */
function errorsInTask(task: AgentTask): readonly ReportedError[] {
  const found = errorsIn(membersOf(task.data));
  if (found.length > 0) return found;
  return partsOfTask(task).flatMap((part) => errorsIn(part, FATAL));
}

/** Returns the data parts of a Task's artifacts, followed by those of its message. */
function partsOfTask({ body: { artifacts, status } }: AgentTask): readonly JsonObject[] {
  return [...(Array.isArray(artifacts) ? artifacts : []), membersOf(status)['message']].flatMap(dataParts);
}

/** Members of an answer that always mean a failure, and never a warning. */
const FATAL = ['adcp_error', 'proto_error'] as const;

/** The largest number of a seller's errors that one line of text repeats. */
const MOST_ERRORS = 3;

/** Returns the errors of an answer in one line, at most `MOST_ERRORS`; empty if there are none. */
export const errorTextIn = (raw: unknown, taskType = ''): string =>
  reportedErrors(raw, taskType)
    .slice(0, MOST_ERRORS)
    .map(reportedText)
    .filter((text) => text !== '')
    .join('; ');

/** True if an error has a code or a recovery, so that its kind is known. */
const isCoded = ({ code, recovery }: ReportedError): boolean => code !== undefined || recovery !== undefined;

/**
 * Returns the error by which a seller refused a call, in its answer or thrown by a client. Undefined for a result or a
 * task. Undefined also for an error of unknown kind: the call then counts as unanswered (calls.md §2.5 to §2.7).
 * @param taskType the call's task type; absent: the request asked for a task's status, not for an operation.
 */
export function refusalIn(raw: unknown, taskType = ''): SellerError | undefined {
  const answer = unwrapped(raw);
  if (answer instanceof SellerError) return answer;
  if (isError(answer)) return thrownRefusal(answer);
  const error = reportedErrors(raw, taskType).find(isCoded);
  return error && isRefusal(raw, error, taskType) ? sellerErrorOf(error) : undefined;
}

/**
 * Returns the seller's error that a client threw. Network errors have a `code` too, so a text code counts only if the
 * protocol defines it or a valid `recovery` comes with it.
 */
function thrownRefusal(error: Error): SellerError | undefined {
  const { code, data, ...members } = Object.fromEntries(Object.entries(error)) as JsonObject;
  const reported = errorsOf({ code: typeof code === 'number' ? code : undefined, data }).find(isCoded);
  if (reported) return sellerErrorOf(reported, error);
  if (typeof code !== 'string') return undefined;
  const isKnown = recoveryOfCode(code) !== undefined || isRecovery(members['recovery']);
  const [own] = isKnown ? errorsOf({ ...members, code, message: error.message }) : [];
  return own && sellerErrorOf(own, error);
}

const FAILED: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['failed', 'rejected']);

function isRefusal(raw: unknown, { code }: ReportedError, taskType: string): boolean {
  const { body, task } = opened(raw, taskType);
  if (task && task.status !== 'completed') return FAILED.has(task.status);
  const told = toolTaskIn(body, taskType);
  if (told) {
    // In an answer with a task id, an error reports the end of that task and is no refusal of the call.
    const isOfTask =
      (told.taskId ?? (task && innerTaskIn(task.body, task.data, taskType)?.taskId)) !== undefined;
    return !isOfTask && (FAILED.has(told.status) || isFailedTool(raw));
  }
  const members = membersOf(body);
  const hasFailed = isFailedTool(raw) || FAILURES.some((name) => isThere(members[name]));
  if (hasFailed && code !== 'STALE_RESPONSE') return true;
  return !hasResult(members, taskType);
}

/** True if the refusal of a `create_media_buy` names a media buy nevertheless, so that the call may have been done. */
export function isContradicted(raw: unknown, taskType: string): boolean {
  if (taskType !== 'create_media_buy') return false;
  const { body, task } = opened(raw, taskType);
  const told = task ? [body, task.data, ...partsOfTask(task)] : [body];
  return told.some((members) => hasResult(membersOf(members), taskType));
}

/** True if the object of a failed tool is a refusal or a task. With any other object the outcome is unknown. */
export const isOutcome = (answer: unknown): boolean => refusalIn(answer) !== undefined || tellsOfTask(answer);

function tellsOfTask(raw: unknown): boolean {
  const { body, task } = opened(raw, '');
  return task !== undefined || toolTaskIn(body, '') !== undefined;
}

/** Error codes by which a tool says that it does not know a task. */
const NO_TASK: ReadonlySet<string> = new Set(['TASK_NOT_FOUND', 'REFERENCE_NOT_FOUND', 'NOT_FOUND']);

/** Returns the error to throw if an answer says that the seller does not know the task; otherwise undefined. */
export function taskUnknownIn(answer: unknown): TaskUnknownError | undefined {
  const refusal = refusalIn(answer);
  return refusal && NO_TASK.has(refusal.code)
    ? new TaskUnknownError(refusal.message, { cause: refusal })
    : undefined;
}

/**
 * Returns the task or the result in the first answer to a call.
 *
 * - Tool transport: a task has the form `{ status, task_id }`.
 * - Agent transport: a task is the answer itself, or its member `result` or `task`.
 * - Any other object is a result. If it has a part of a result, e.g. a media buy's id, its `status` may be the media
 *   buy's and not a task's.
 * @throws RegistrationError `answer_invalid` for anything else. It is then unknown if the operation was done.
 */
export function answerIn(raw: unknown, taskType: string): SellerAnswer {
  const { body, task } = opened(raw, taskType);
  const found = task ? agentAnswer(task, taskType) : toolTaskIn(body, taskType);
  if (found) return withinBounds(found);
  const reason = notAResult(raw, body, taskType);
  if (reason === undefined) {
    return withinBounds({ status: 'completed', ...idOf(taskIdOf(body, task)), data: resultOf(body, task) });
  }
  const said = errorTextIn(raw, taskType);
  throw new RegistrationError(
    'answer_invalid',
    `The answer ${reason}${said === '' ? '' : ` (${said})`}: it is unknown whether the operation was done, and the call is repeated. Pass the object that the operation answered.`,
  );
}

/** Returns the answer that an A2A Task gives. Undefined if the Task is completed and its data is a plain result. */
function agentAnswer({ status, body, taskId, data }: AgentTask, taskType: string): SellerAnswer | undefined {
  if (status !== 'completed') return { status, ...idOf(taskId), ...(data !== undefined && { data }) };
  if (data === undefined) return { status, ...idOf(taskId) };
  const inner = innerTaskIn(body, data, taskType);
  if (!inner) return undefined;
  const result = present(membersOf(data), 'result') ?? resultBeside(shown(membersOf(data)), inner.status);
  const isOther = inner.taskId !== undefined && taskId !== undefined && inner.taskId !== taskId;
  return {
    status: inner.status,
    ...idOf(inner.taskId ?? taskId),
    ...(result !== undefined && { data: result }),
    ...(isOther && { replaces: taskId }),
  };
}

const idOf = (taskId: string | undefined): Pick<SellerAnswer, 'taskId'> =>
  taskId === undefined ? {} : { taskId };

/** Returns the id of the task that comes with a result; in the tool transport it is the result's `task_id`. */
const taskIdOf = (body: unknown, task: AgentTask | undefined): string | undefined =>
  task ? task.taskId : textIn(membersOf(body)['task_id']);

/** Returns the answer. @throws RegistrationError if its task id is longer than the task id of a webhook may be. */
function withinBounds(answer: SellerAnswer): SellerAnswer {
  const length = answer.taskId?.length ?? 0;
  if (length <= MAX_TEXT) return answer;
  throw new RegistrationError(
    'answer_invalid',
    `The answer has a task_id of ${length} characters, the limit is ${MAX_TEXT}: report it to the seller. The call is repeated.`,
  );
}

/** Members that report an error and are no part of a result. `isError` belongs to the transport. */
const FAILURES = ['error', 'adcp_error', 'proto_error', 'isError'] as const;

const isThere = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

/** Returns the reason why an answer without a known status is no result of the operation; undefined if it is one. */
function notAResult(raw: unknown, answer: unknown, taskType: string): string | undefined {
  if (!isPlainObject(answer)) return 'is not a plain object';
  const members = membersOf(answer);
  if (isFailedTool(raw)) return 'is an error';
  if (hasUnknownState(raw)) return 'has a Task whose state is not known';
  const isStale = errorsIn(members).some(({ code }) => code === 'STALE_RESPONSE');
  const failure = isStale ? undefined : FAILURES.find((name) => isThere(members[name]));
  if (failure !== undefined) return `has a member ${failure}`;
  if (isMessage(members)) return "is an agent's message without a data part";
  if (isThere(members['content']) && !isThere(members['status']))
    return 'is the result of a tool-transport client without structuredContent';
  return hasResult(members, taskType) && !hasUnknownStatus(members) ? undefined : withoutResult(members);
}

/** True for an A2A Task in a state that no A2A version has. Its work may go on, so it must not pass for a result. */
function hasUnknownState(raw: unknown): boolean {
  const answer = unwrapped(raw);
  return !agentTaskIn(answer) && layersOf(answer).some(({ status }) => stateOf(status) !== undefined);
}

/** True for a task id with an unknown status. False beside a media buy's id: the status may be the media buy's. */
const hasUnknownStatus = (members: JsonObject): boolean =>
  textIn(members['task_id']) !== undefined &&
  present(members, 'status') !== undefined &&
  textIn(members['media_buy_id']) === undefined;

function withoutResult(members: JsonObject): string | undefined {
  const status = present(members, 'status');
  if (textIn(members['task_id']) !== undefined) return 'has a task without a known status';
  if (status !== undefined)
    return `has a status that is not a task's (${sellerText(textOf(status))}), and no part of a result`;
  if (isThere(members['errors'])) return 'has only errors';
  return isEmpty(members) ? 'has no part of a result' : undefined;
}

/** Returns the task in an object of the tool transport; undefined if the object contains none. */
function toolTaskIn(answer: unknown, taskType: string): SellerAnswer | undefined {
  for (const layer of layersOf(answer)) {
    const status = taskWordIn(layer, taskType);
    if (status === undefined) continue;
    const data = toolResult(layer);
    return { status, ...idOf(textIn(layer['task_id'])), ...(data !== undefined && { data }) };
  }
  return undefined;
}

/** Returns the member `result` of a task, or else the members beside `status` as the result. */
function toolResult(body: JsonObject): unknown {
  const result = present(body, 'result');
  if (result !== undefined) return result;
  const members = Object.entries(withoutNulls(body)).filter(
    ([name]) => !BESIDE.has(name) && name !== 'result',
  );
  return members.length === 0
    ? undefined
    : resultBeside(Object.fromEntries(members), textMember(body, 'status'));
}

/** Returns `members` as a result; undefined for a completed task without any part of a result (calls.md §1.6). */
const resultBeside = (members: JsonObject, status: string | undefined): JsonObject | undefined =>
  status === 'completed' && isEmpty(members) ? undefined : members;

/** Returns an object without null members and `replayed`, which marks a repeated answer (calls.md §1.4, §1.8). */
function shown(body: JsonObject): JsonObject {
  const { replayed: _before, ...members } = withoutNulls(body);
  return members;
}

/**
 * Returns a result as callers get it. If a task id stands in the result of the tool transport, the id, `context` and
 * `message` are removed as parts of the envelope.
 */
function resultOf(body: unknown, task: AgentTask | undefined): unknown {
  const members = shown(membersOf(body));
  if (task || textIn(members['task_id']) === undefined) return members;
  const { task_id: _task, context: _context, message: _message, ...own } = members;
  return own;
}
