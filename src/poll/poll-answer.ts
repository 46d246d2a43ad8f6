// Reads the answer to a request about a task: its status, its data, and when to ask again (calls.md §1, §3.2). The
// poller uses it.
import { AnswerRefusedError } from '../calls/refused-answer.ts';
import { canonicalJson } from '../codec/canonical-json.ts';
import { isLongerJson } from '../codec/json-size.ts';
import { defined, isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import { textOf } from '../shared/errors.ts';
import { turnAfter } from '../shared/time-limits.ts';
import { agentData } from '../events/agent-data.ts';
import { isErrorAlone } from '../events/error-alone.ts';
import { ERROR_MEMBERS, retryAfterMsIn } from '../events/error-object.ts';
import type { TaskStatus } from '../events/event.ts';
import { parseInstant } from '../events/instant.ts';
import { isTerminal, normaliseState, taskStatus } from '../events/status.ts';
import { innerTaskIn } from '../events/task-word.ts';
import {
  errorTextIn,
  isFailedTool,
  refusalIn,
  taskUnknownIn,
  unwrapped,
  waitMs,
} from '../registrations/answer.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** The answer of a seller about a task. */
export interface TaskSeen {
  readonly status: TaskStatus;
  /** The time of the change, as the seller states it, RFC 3339 with a zone. */
  readonly updatedAt?: string;
  /** The result, or the data beside the status; undefined if the answer has none. */
  readonly data?: unknown;
  /** The time for which the seller asks not to be polled again, ms. */
  readonly hintMs?: number;
  /** The id of the task that continues instead of the requested one, whose call is over (calls.md §1.5). */
  readonly movedTo?: string;
}

/** Thrown if the answer is not the status of a task. */
export class AnswerError extends PrintableError {
  override readonly name = 'AnswerError';
  /** The code, which the alarm `poll_failing` has too. */
  readonly code = 'answer_invalid';
}

/**
 * Reads the answer to a request about a task.
 * @throws SellerError or TaskUnknownError if the answer is an error; AnswerError if it is not the status of a task.
 */
export function taskSeenIn(given: unknown, { taskId, taskType }: Asked): TaskSeen {
  const task = askedTaskIn(given, taskId);
  const { data, updatedAt } = task.isAgent ? agentTask(task) : toolTask(task, taskType);
  const seen = {
    status: task.status,
    ...defined({ updatedAt: instantIn(updatedAt), data, hintMs: hintIn(task.body) }),
  };
  return task.isAgent && task.status === 'completed'
    ? withInner(seen, task.body, { taskId, taskType })
    : seen;
}

/** The task that the request was about. */
interface Asked {
  readonly taskId: string;
  /** e.g. `create_media_buy`. */
  readonly taskType: string;
}

/** Finds the requested task in an answer. @throws if the answer is an error, or about another task. */
function askedTaskIn(given: unknown, taskId: string): Task {
  const outer = taskIn(unwrapped(given));
  // A request to an agent's skill is answered by a Task of its own, which may have failed.
  const task = outer && (isOf(outer, taskId) ? outer : (answeredIn(outer) ?? outer));
  const failed = task && errorOfQuestion(task);
  if (failed) throw failed;
  if (task && isOf(task, taskId)) return task;
  const refusal = taskUnknownIn(given) ?? refusalIn(given);
  if (refusal) throw refusal;
  if (!task) throw noTask(given);
  const shown = textOf(idOf(task)).slice(0, 100);
  throw new AnswerError(`The answer is of another task (${shown}). Tell the seller.`);
}

/**
 * Returns the error of a request whose answer names no task (calls.md §2.8). Such an error says nothing about the
 * task's own status.
 */
function errorOfQuestion(task: Task): Error | undefined {
  if (task.isAgent || idOf(task) !== undefined) return undefined;
  const { status: _ofQuestion, ...members } = task.body;
  return taskUnknownIn(members) ?? refusalIn(members);
}

/** True if the answer is about the task `taskId`. In the tool transport an answer need not name its task. */
const isOf = (task: Task, taskId: string): boolean => (idOf(task) ?? taskId) === taskId;

/**
 * Reads the task inside the data of a Task of the agent transport, if there is one. Its status is used in place of the
 * Task's. If another task continues it, `movedTo` is the id of that task.
 */
function withInner(seen: TaskSeen, body: JsonObject, { taskId, taskType }: Asked): TaskSeen {
  const inner = innerTaskIn(body, seen.data, taskType);
  // The call is over, and has failed (calls.md §1.9).
  if (!inner) return isErrorAlone(seen.data, taskType) ? { ...seen, status: 'failed' } : seen;
  const { status } = inner;
  const isMoved = !isTerminal(status) && inner.taskId !== undefined && inner.taskId !== taskId;
  // The id is stored and polled from now on, so its length is limited.
  if (isMoved && (inner.taskId?.length ?? 0) > MAX_TEXT)
    throw new AnswerError(`The answer names a task_id of more than ${MAX_TEXT} characters. Tell the seller.`);
  return { ...seen, status, ...(isMoved && { movedTo: inner.taskId }) };
}

/** Returns the operation's answer that is in the data of a Task, in the form of the tool transport. */
function answeredIn({ body, status, isAgent }: Task): Task | undefined {
  const { data } = agentData({ form: 'task', body });
  return isAgent && status === 'completed' ? ofTask(data) : undefined;
}

/** Returns the error for an answer that contains no status of a task. */
function noTask(given: unknown): Error {
  const said = errorTextIn(given);
  // `mcpCaller` throws the same error: the operation may be missing at the seller.
  if (isFailedTool(given)) return new Error(`the operation failed: ${said}`);
  return new AnswerError(
    `The answer has no status of a task${said === '' ? '' : ` (${said})`}. Give the object that the operation answered, and tell the seller.`,
  );
}

/** The parts of an answer about a task, taken from the members of its transport. */
interface AnswerParts {
  readonly data: unknown;
  readonly updatedAt: unknown;
}

const toolTask = ({ body, status }: Task, taskType: string): AnswerParts => ({
  data: toolData(body, status, taskType),
  updatedAt: body['updated_at'],
});

const agentTask = ({ body }: Task): AnswerParts => ({
  data: agentData({ form: 'task', body }).data,
  updatedAt: isJsonObject(body['status']) ? body['status']['timestamp'] : undefined,
});

const idOf = ({ body, isAgent }: Task): unknown =>
  isAgent ? (present(body, 'taskId') ?? present(body, 'id')) : present(body, 'task_id');

interface Task {
  readonly body: JsonObject;
  readonly status: TaskStatus;
  readonly isAgent: boolean;
}

/** Returns the task in an answer. It may be in the member in which a transport's client returns it. */
function taskIn(answer: unknown): Task | undefined {
  if (!isJsonObject(answer)) return undefined;
  const own = ofTask(answer);
  // If the answer itself names a task, its `result` is the task's result. A status there may be a media buy's.
  if (own || NAMES.some((name) => present(answer, name) !== undefined)) return own;
  return ofTask(answer['task']) ?? ofTask(answer['result']);
}

const NAMES = ['status', 'task_id', 'task_type'] as const;

function ofTask(body: unknown): Task | undefined {
  if (!isJsonObject(body)) return undefined;
  const { status: given } = body;
  const state = isJsonObject(given) ? given['state'] : undefined;
  const word = typeof state === 'string' ? normaliseState(state) : given;
  const status = typeof word === 'string' ? taskStatus(word) : undefined;
  return status && { body, status, isAgent: typeof state === 'string' };
}

/**
 * Returns the data of a status: the result, the progress of an interim status, or the error of a failure without a
 * result. For `completed`, an error alone is not a result (calls.md §1.9).
 */
function toolData(body: JsonObject, status: TaskStatus, taskType: string): unknown {
  const result = present(body, 'result');
  if (status === 'completed' && isErrorAlone(result, taskType)) return undefined;
  if (result !== undefined) return result;
  if (!isTerminal(status)) return present(body, 'progress');
  if (status === 'completed') return undefined;
  const errors = ERROR_MEMBERS.flatMap((name) => {
    const value = present(body, name);
    return typeof value === 'object' ? [[name, value] as const] : [];
  });
  return errors.length === 0 ? undefined : Object.fromEntries(errors);
}

function instantIn(value: unknown): string | undefined {
  return typeof value === 'string' && parseInstant(value) ? value : undefined;
}

/**
 * Returns the pause that a seller asks for: its poll interval, or `retry_after` as in any other answer (calls.md §2.4).
 * Ms.
 */
function hintIn(body: JsonObject): number | undefined {
  const { pollInterval, retry_after_seconds } = body;
  if (typeof pollInterval === 'number') return waitMs(pollInterval);
  return retryAfterMsIn(body) ?? retryAfterMsIn({ retry_after: retry_after_seconds });
}

/**
 * Returns the hash of data. @throws AnswerRefusedError if the data is too large, because it would be refused when it is
 * observed.
 */
export async function hashOf(data: unknown, hashes: Hashes, maxBytes: number): Promise<string> {
  const isOver = isLongerJson(data, maxBytes);
  const text = isOver ? '' : canonicalJson(data);
  if (isOver || text.length > maxBytes) {
    throw new AnswerRefusedError(`its data is over maxBodyBytes (${maxBytes})`);
  }
  await turnAfter(text.length);
  const hash = hashes.sha256Hex(text);
  await turnAfter(text.length);
  return hash;
}
