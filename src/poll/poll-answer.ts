// Reads a seller's answer about a task: the status, the data, and the wait until the next request (calls.md §1, §3.2).
// The poller uses it.
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

/** The state of a task, as the seller's answer shows it. */
export interface TaskSeen {
  readonly status: TaskStatus;
  /** The time of the status change, as the seller states it, RFC 3339 with a zone. */
  readonly updatedAt?: string;
  /** The result, or the data beside the status; undefined if the answer has none. */
  readonly data?: unknown;
  /** The wait before the next request that the seller asks for, ms. */
  readonly hintMs?: number;
  /**
   * The id of another task, found inside the requested one, in which the work goes on. The requested task itself is
   * completed (calls.md §1.5), so the inner task is polled from now on.
   */
  readonly movedTo?: string;
}

/** Thrown if a seller's answer is not the status of a task. */
export class AnswerError extends PrintableError {
  override readonly name = 'AnswerError';
  /** The stable error code, which the alarm `poll_failing` has too. */
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
  /** The operation that began the task, e.g. `create_media_buy`. */
  readonly taskType: string;
}

/** Returns the requested task in an answer. @throws if the answer is an error, or about another task. */
function askedTaskIn(given: unknown, taskId: string): Task {
  const outer = taskIn(unwrapped(given));
  // Over the agent transport (A2A), a skill answers with a Task of its own. The requested task may be inside the data
  // of that Task.
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
 * Returns the error in an answer that names no task (calls.md §2.8); undefined: none. Such an error is about the
 * request, and says nothing about the task's status.
 */
function errorOfQuestion(task: Task): Error | undefined {
  if (task.isAgent || idOf(task) !== undefined) return undefined;
  const { status: _ofQuestion, ...members } = task.body;
  return taskUnknownIn(members) ?? refusalIn(members);
}

/** True if the answer is about the task `taskId`. In the tool transport (MCP) an answer need not name its task. */
const isOf = (task: Task, taskId: string): boolean => (idOf(task) ?? taskId) === taskId;

/**
 * Reads the task inside the data of a completed A2A Task, if there is one, and uses its status instead of the Task's
 * own. If the inner task has another id and has not ended, `movedTo` is that id.
 */
function withInner(seen: TaskSeen, body: JsonObject, { taskId, taskType }: Asked): TaskSeen {
  const inner = innerTaskIn(body, seen.data, taskType);
  // A completed Task whose data is only an error means that the call has failed (calls.md §1.9).
  if (!inner) return isErrorAlone(seen.data, taskType) ? { ...seen, status: 'failed' } : seen;
  const { status } = inner;
  const isMoved = !isTerminal(status) && inner.taskId !== undefined && inner.taskId !== taskId;
  // The inner task's id is stored and polled from now on, so its length is limited.
  if (isMoved && (inner.taskId?.length ?? 0) > MAX_TEXT)
    throw new AnswerError(`The answer names a task_id of more than ${MAX_TEXT} characters. Tell the seller.`);
  return { ...seen, status, ...(isMoved && { movedTo: inner.taskId }) };
}

/** Returns the operation's answer in the data of a completed A2A Task, as a task of the tool transport (MCP). */
function answeredIn({ body, status, isAgent }: Task): Task | undefined {
  const { data } = agentData({ form: 'task', body });
  return isAgent && status === 'completed' ? ofTask(data) : undefined;
}

/** Returns the error for an answer that contains no status of a task. */
function noTask(given: unknown): Error {
  const said = errorTextIn(given);
  // `mcpCaller` throws this error itself; another client may return the failed tool result. The error's text may show
  // that the seller lacks the operation.
  if (isFailedTool(given)) return new Error(`the operation failed: ${said}`);
  return new AnswerError(
    `The answer has no status of a task${said === '' ? '' : ` (${said})`}. Give the object that the operation answered, and tell the seller.`,
  );
}

/** The data and the time in an answer about a task. Each transport has them in other members. */
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

/**
 * Returns the task in an answer: the answer itself, or its member `task` or `result`, in which some clients return the
 * task.
 */
function taskIn(answer: unknown): Task | undefined {
  if (!isJsonObject(answer)) return undefined;
  const own = ofTask(answer);
  // If the answer itself has members of a task, `result` is not searched: a status in it may be that of a media buy.
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
 * Returns the data of an MCP answer: the result, the progress if the task goes on, or the errors of a failure without a
 * result. For `completed`, an error alone does not count as a result (calls.md §1.9).
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
 * Returns the wait before the next request that a seller asks for: its poll interval, or `retry_after` as in any other
 * answer (calls.md §2.4). Ms.
 */
function hintIn(body: JsonObject): number | undefined {
  const { pollInterval, retry_after_seconds } = body;
  if (typeof pollInterval === 'number') return waitMs(pollInterval);
  return retryAfterMsIn(body) ?? retryAfterMsIn({ retry_after: retry_after_seconds });
}

/**
 * Returns the hash of a task's data. @throws AnswerRefusedError if the data is too large, because `receiver.observe`
 * would refuse it.
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
