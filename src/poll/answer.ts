import { defined, isJsonObject, type JsonObject } from '../codec/members.ts';
import { textOf } from '../errors.ts';
import { agentData } from '../events/agent-data.ts';
import type { TaskStatus } from '../events/event.ts';
import { parseInstant } from '../events/instant.ts';
import { isTerminal, normaliseState, taskStatus } from '../events/status.ts';
import {
  errorTextIn,
  isFailedTool,
  refusalIn,
  reportedIn,
  SellerBusyError,
  taskUnknownIn,
  TOO_MANY_REQUESTS,
  unwrapped,
  waitMs,
} from '../registrations/answer.ts';

/** What a seller has answered about a task. */
export interface TaskSeen {
  readonly status: TaskStatus;
  /** When the seller says that it changed, RFC 3339 with a zone. */
  readonly updatedAt?: string;
  /** The result, or what the status says; undefined where the answer has none. */
  readonly data?: unknown;
  /** For how long the seller asks not to be asked again, ms. */
  readonly hintMs?: number;
}

/** What a seller has answered cannot be understood as a task's status. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

/**
 * Reads the answer to a question about a task.
 * @throws SellerError, SellerBusyError or TaskUnknownError where it is a refusal; AnswerError for what is no task's status.
 */
export function taskSeenIn(given: unknown, taskId: string): TaskSeen {
  const answer = unwrapped(given);
  const refusal = busyIn(answer) ?? taskUnknownIn(answer) ?? refusalIn(answer);
  if (refusal) throw refusal;
  const task = taskIn(answer);
  if (!task) throw noTask(given);
  const { id = taskId, data, updatedAt } = task.isAgent ? agentTask(task) : toolTask(task);
  if (id !== taskId) {
    throw new AnswerError(`The answer is of another task (${textOf(id).slice(0, 100)}). Tell the seller.`);
  }
  return {
    status: task.status,
    ...defined({ updatedAt: instantIn(updatedAt), data, hintMs: hintIn(task.body) }),
  };
}

/** What an answer without a task's status says in its place. */
function noTask(given: unknown): Error {
  const error = reportedIn(given);
  if (error) return error;
  const said = errorTextIn(given);
  // As `mcpCaller` reads it: the operation may not be there.
  if (isFailedTool(given)) return new Error(`the operation failed: ${said}`);
  return new AnswerError(
    `The answer has no status of a task${said === '' ? '' : ` (${said})`}. Give the object that the operation answered, and tell the seller.`,
  );
}

/** What an answer says of its task, by the names of its transport. */
interface AnswerParts {
  readonly id: unknown;
  readonly data: unknown;
  readonly updatedAt: unknown;
}

const toolTask = ({ body, status }: Task): AnswerParts => ({
  id: body['task_id'],
  data: toolData(body, status),
  updatedAt: body['updated_at'],
});

const agentTask = ({ body }: Task): AnswerParts => ({
  id: body['taskId'] ?? body['id'],
  data: agentData({ form: 'task', body }).data,
  updatedAt: isJsonObject(body['status']) ? body['status']['timestamp'] : undefined,
});

interface Task {
  readonly body: JsonObject;
  readonly status: TaskStatus;
  readonly isAgent: boolean;
}

/** As it is, or in the member that a transport's client gives it in. */
function taskIn(answer: unknown): Task | undefined {
  if (!isJsonObject(answer)) return undefined;
  const own = ofTask(answer);
  // What names a task itself has a result in it, whose status is a media buy's, say.
  if (own || NAMES.some((name) => Object.hasOwn(answer, name))) return own;
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

/** Of an interim status its progress; of a failure without a result its error. */
function toolData({ result, progress, error }: JsonObject, status: TaskStatus): unknown {
  if (result !== undefined && result !== null) return result;
  if (!isTerminal(status)) return progress ?? undefined;
  return status !== 'completed' && isJsonObject(error) ? { error } : undefined;
}

function instantIn(value: unknown): string | undefined {
  return typeof value === 'string' && parseInstant(value) ? value : undefined;
}

const SECOND_MS = 1000;

/** Members by which a seller says when to ask again, and how many ms each counts by. */
const HINTS: readonly (readonly [name: string, ms: number])[] = [
  ['pollInterval', 1],
  ['retry_after', SECOND_MS],
  ['retry_after_seconds', SECOND_MS],
];

function hintIn(body: JsonObject): number | undefined {
  for (const [name, ms] of HINTS) {
    const value = body[name];
    if (typeof value === 'number') return waitMs(value * ms);
  }
  return undefined;
}

/** A refusal that says when to come again is a seller that is busy. */
function busyIn(answer: unknown): SellerBusyError | undefined {
  const error = isJsonObject(answer) ? answer['error'] : undefined;
  if (!isJsonObject(error) || !refusalIn(answer)) return undefined;
  const retryAfterMs = hintIn(error);
  return retryAfterMs === undefined ? undefined : new SellerBusyError(TOO_MANY_REQUESTS, retryAfterMs);
}
