// Finds a task's status in an object whose member `status` may also be that of a media buy (calls.md §1.1, §1.2, §1.5).
// Called for agent payloads, and for answers of calls and polls.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { isErrorAlone } from './error-alone.ts';
import type { TaskStatus } from './event.ts';
import { taskStatus } from './status.ts';

/** Words that are both a task's status and a media buy's. */
const SHARED: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['completed', 'canceled', 'rejected']);

/**
 * Returns the task's status in the member `status`. Undefined if that is the status of a media buy, because the object
 * is a result (calls.md §1.2).
 */
export function taskWordIn(body: JsonObject, taskType?: string): TaskStatus | undefined {
  const word = taskStatus(textMember(body, 'status'));
  if (word === undefined || !SHARED.has(word)) return word;
  // An error without a result means that the call has failed (calls.md §1.9).
  if (word === 'completed' && isErrorAlone(body, taskType)) return undefined;
  const isBuys = (textMember(body, 'media_buy_id') ?? '') !== '';
  return isBuys && textMember(body, 'media_buy_status') === undefined ? undefined : word;
}

/** A task that is reported in the data part of a completed Task. */
export interface InnerTask {
  readonly status: TaskStatus;
  /** The task's id. If it is absent, the task has the id of the outer Task. */
  readonly taskId?: string;
}

/** Returns the task in the data part of a completed Task (calls.md §1.1, §1.5); undefined if the data is a result. */
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
