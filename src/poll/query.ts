import { isJsonObject } from '../codec/members.ts';
import type { CallSessions } from '../calls/sessions.ts';
import type { TaskStatus, Transport } from '../events/event.ts';
import type { EditionName } from '../protocol.ts';
import { ConfigError } from '../errors.ts';
import type { JsonObject } from '../registrations/json.ts';
import type { CallSeller } from '../registrations/registration.ts';
import { type TaskSeen, taskSeenIn } from './answer.ts';
import { failureOf } from './failure.ts';

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
function queriesFor(transport: Transport, task: PolledTask): readonly TaskQuery[] {
  return QUERIES[transport][task.edition].map((query) => query(task));
}

/** What questions are asked with. */
export interface QuestionContext {
  readonly call: CallSeller;
  /** One a seller, for all questions. */
  readonly sessions: CallSessions;
  /** By agent URL. */
  readonly transport: (agentUrl: string) => Transport;
  readonly query: ((task: PolledTask) => TaskQuery | undefined) | undefined;
}

/** Asks by the first operation that the seller has; once more where it says `completed` and gives no result. */
export function questioner({
  call,
  sessions,
  transport,
  query,
}: QuestionContext): (task: PolledTask, signal: AbortSignal) => Promise<TaskSeen> {
  /** By the how many-th operation sellers are asked that do not have the first. */
  const known = new Map<string, number>();

  const askBy = async (of: TaskQuery, { sender, taskId }: PolledTask, signal: AbortSignal) =>
    taskSeenIn(await call(sender, of.operation, of.arguments, { signal, sessions }), taskId);

  const first = async (queries: readonly TaskQuery[], task: PolledTask, signal: AbortSignal) => {
    const { sender } = task;
    for (let at = known.get(sender) ?? 0; ; at += 1) {
      const of = queries[at] ?? queries[0];
      if (!of) throw new ConfigError('query: no question was given.');
      try {
        const seen = await askBy(of, task, signal);
        if (at > 0) known.set(sender, at);
        return { of, seen };
      } catch (error) {
        if (failureOf(error).kind === 'no-operation' && at + 1 < queries.length) continue;
        // It may have the first one by now.
        known.delete(sender);
        throw error;
      }
    }
  };

  return async (task, signal) => {
    const by = transport(task.sender);
    const own = ownQuery(query?.(task));
    const { of, seen } = await first(own ? [own] : queriesFor(by, task), task, signal);
    if (seen.status !== 'completed' || seen.data !== undefined) return seen;
    const again = by === 'tool' ? { ...of, arguments: { ...of.arguments, include_result: true } } : of;
    return askBy(again, task, signal);
  };
}

/** @throws ConfigError for what is no question: the client would fail of it in words of its own. */
function ownQuery(given: unknown): TaskQuery | undefined {
  if (given === undefined || given === null) return undefined;
  const { operation, arguments: args } = given as Partial<TaskQuery>;
  if (typeof operation === 'string' && operation !== '' && isJsonObject(args))
    return { operation, arguments: args };
  throw new ConfigError(
    'query: give { operation, arguments }, a name and an object; or undefined where the seller is asked as by default.',
  );
}
