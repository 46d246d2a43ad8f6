import type { TaskStatus, Transport } from '../events/event.ts';
import type { EditionName } from '../protocol.ts';
import type { JsonObject } from '../registrations/json.ts';

/** A task that is asked about. */
export interface PolledTask {
  /** Agent URL of its seller. */
  readonly sender: string;
  readonly taskId: string;
  readonly operationId: string;
  /** e.g. `create_media_buy`. */
  readonly taskType: string;
  /** `account` of the call that began it. */
  readonly account?: JsonObject;
  /** The seller's, else the receiver's. */
  readonly edition: EditionName;
  /** What was known of it last. */
  readonly status?: TaskStatus;
}

/** How a seller is asked about a task: an operation, and its arguments. */
export interface TaskQuery {
  readonly operation: string;
  readonly arguments: JsonObject;
}

type Query = (task: PolledTask) => TaskQuery;

/** The operation of the tool transport; the result is asked for each time, so that an end comes with what it brought. */
const byTool =
  (operation: string): Query =>
  ({ taskId, account }) => ({
    operation,
    arguments: { task_id: taskId, include_result: true, ...(account && { account }) },
  });

const NEWER = byTool('get_task_status');
const OLDER = byTool('tasks/get');

/** The agent transport's own question, the same in all of its versions. */
const BY_AGENT: Query = ({ taskId }) => ({ operation: 'tasks/get', arguments: { id: taskId } });

/** By which operations a seller may be asked: the first that it has. */
const QUERIES: Readonly<Record<Transport, Readonly<Record<EditionName, readonly Query[]>>>> = {
  tool: { '3.0': [NEWER, OLDER], '3.1': [NEWER, OLDER], '3.2': [NEWER] },
  agent: { '3.0': [BY_AGENT], '3.1': [BY_AGENT], '3.2': [BY_AGENT] },
};

/** The questions that a seller may understand, the newest first. */
export function queriesFor(transport: Transport, task: PolledTask): readonly TaskQuery[] {
  return QUERIES[transport][task.edition].map((query) => query(task));
}
