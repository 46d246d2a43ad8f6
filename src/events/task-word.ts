// Finds a task's status inside an object that may be a result with a status of its own (calls.md §1.1, §1.2,
// §1.5).
// Called for agent payloads, answers of calls and polls.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { isErrorAlone } from './error-alone.ts';
import type { TaskStatus } from './event.ts';
import { taskStatus } from './status.ts';

/** Words that tasks and media buys share. */
const SHARED: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['completed', 'canceled', 'rejected']);

/**
 * The task's status in `status` of an object that may be a result, whose own status is a media buy's
 * (calls.md §1.2). Undefined if it is no word of a task.
 */
export function taskWordIn(body: JsonObject, taskType?: string): TaskStatus | undefined {
  const word = taskStatus(textMember(body, 'status'));
  if (word === undefined || !SHARED.has(word)) return word;
  // An error means that the call has failed (calls.md §1.9).
  if (word === 'completed' && isErrorAlone(body, taskType)) return undefined;
  const isBuys = (textMember(body, 'media_buy_id') ?? '') !== '';
  return isBuys && textMember(body, 'media_buy_status') === undefined ? undefined : word;
}

/** The task that the data part of a completed Task reports. */
export interface InnerTask {
  readonly status: TaskStatus;
  /** If absent, the Task's own id is used. */
  readonly taskId?: string;
}

/** The task in the data part of a completed Task (calls.md §1.1, §1.5); undefined if the data is a result. */
export function innerTaskIn(task: JsonObject, data: unknown, taskType?: string): InnerTask | undefined {
  if (!isJsonObject(data)) return undefined;
  const status = taskWordIn(data, taskType);
  if (status === undefined) return undefined;
  const taskId = textMember(data, 'task_id') || idInArtifact(task);
  return { status, ...(taskId !== undefined && { taskId }) };
}

const ID_MEMBERS = ['adcp_task_id', 'proto_task_id'] as const;

function idInArtifact(task: JsonObject): string | undefined {
  const artifacts = present(task, 'artifacts');
  const [first] = Array.isArray(artifacts) ? (artifacts as readonly unknown[]) : [];
  const metadata = isJsonObject(first) ? present(first, 'metadata') : undefined;
  if (!isJsonObject(metadata)) return undefined;
  return ID_MEMBERS.map((name) => textMember(metadata, name)).find((id) => id);
}
