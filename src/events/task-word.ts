// Finds a task's status in an object that may also be a result with a status of its own (calls.md §1.1, §1.2,
// §1.5).
// Called for agent payloads, answers of calls and polls.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { isErrorAlone } from './error-alone.ts';
import type { TaskStatus } from './event.ts';
import { taskStatus } from './status.ts';

/** Words that are both a task's status and a media buy's. */
const SHARED: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['completed', 'canceled', 'rejected']);

/**
 * The task's status in the member `status`. The object may be a result, and then the status may be that of a media
 * buy (calls.md §1.2). Undefined if it is not a task's.
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
  /** The task's id; if it is absent, the id of the outer Task is used. */
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
