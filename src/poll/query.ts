// Asks sellers about tasks, with an operation that the seller has (calls.md §3.1), and remembers which operation each
// seller answers. The poller uses it.
import { putBounded } from '../shared/bounded.ts';
import { isJsonObject } from '../codec/members.ts';
import type { CallSessions } from '../calls/sessions.ts';
import type { TaskStatus, Transport } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';
import { ConfigError } from '../shared/errors.ts';
import type { JsonObject } from '../registrations/answer-json.ts';
import type { CallSeller } from '../registrations/call-seller.ts';
import { type TaskSeen, taskSeenIn } from './poll-answer.ts';
import { failureOf, type PollFailure } from './failure.ts';

/** A task that the poller is about to ask a seller about, passed to the option `query`. */
export interface PolledTask {
  /** The agent URL of the seller. */
  readonly sender: string;
  readonly taskId: string;
  readonly operationId: string;
  /** The task type, e.g. `create_media_buy`. */
  readonly taskType: string;
  /** Your own reference for the operation that began the task. */
  readonly ref?: string;
  /** The `account` of the call that began the task. */
  readonly account?: JsonObject;
  /** The protocol edition of the seller; if none is set, the receiver's. */
  readonly edition: EditionName;
  /** The last known status. */
  readonly status?: TaskStatus;
}

/**
 * The operation and arguments with which a seller is asked about a task. The option `query` of `createPoller` returns
 * it.
 */
export interface TaskQuery {
  /** The name of the operation that the seller is asked to run. */
  readonly operation: string;
  /** The arguments of the operation. */
  readonly arguments: JsonObject;
}

type Query = (task: PolledTask) => TaskQuery;

/**
 * Returns the request about a task over the tool transport (MCP). It always asks for the result, so that the end of a
 * task comes with its data.
 */
const byTool =
  (operation: string): Query =>
  ({ taskId, account }) => ({
    operation,
    arguments: { task_id: taskId, include_result: true, ...(account && { account }) },
  });

/**
 * The names under which sellers may have the operation that asks about a task. The first one is the protocol's own
 * (calls.md §3.1).
 */
const NAMES = ['get_task_status', 'tasks/get', 'tasks_get', 'get_task'] as const;

/** The request about a task that the agent transport (A2A) itself defines. It is the same in all versions. */
const BY_AGENT: Query = ({ taskId }) => ({ operation: 'tasks/get', arguments: { id: taskId } });

/**
 * Returns the requests that a seller may understand, in the order in which they are tried.
 * @param listed the names of the seller's operations; undefined: unknown.
 */
function queriesFor(
  transport: Transport,
  task: PolledTask,
  listed: readonly string[] | undefined,
): readonly TaskQuery[] {
  const named = NAMES.filter((name) => listed?.includes(name));
  const skills = named.slice(0, 1).map(byTool);
  if (transport === 'agent') {
    const isSkillFirst = task.edition !== '3.0' && task.edition !== '3.1';
    return (isSkillFirst ? [...skills, BY_AGENT] : [BY_AGENT, ...skills]).map((query) => query(task));
  }
  return (skills.length > 0 ? skills : NAMES.map(byTool)).map((query) => query(task));
}

/** The functions and caches that requests about tasks need. */
export interface QuestionContext {
  readonly call: CallSeller;
  /** The sessions with sellers that all requests share: one for each seller and access token. */
  readonly sessions: CallSessions;
  /** Returns the transport of a seller, by agent URL. */
  readonly transport: (agentUrl: string) => Transport;
  readonly query: ((task: PolledTask) => TaskQuery | undefined) | undefined;
  /** Asks the seller for its capabilities if that is due. It never rejects. */
  readonly learn?: (agentUrl: string, ref: string | undefined, stopping: AbortSignal) => Promise<void>;
  /** The cache of the operations that each seller lists; absent: a new cache is made. */
  readonly lists?: Lists;
}

/** The most sellers whose lists of operations are cached. */
const MAX_LISTS = 10_000;

/**
 * A cache of the operations that each seller lists. A list is requested once, and again after `forget`, which is called
 * when the seller lacks a listed operation.
 */
export interface Lists {
  readonly of: (
    task: Pick<PolledTask, 'sender' | 'ref'>,
    signal: AbortSignal,
  ) => Promise<readonly string[] | undefined>;
  readonly forget: (sender: string) => void;
}

/** Makes a cache of the sellers' lists of operations for this process. */
export function listsOf({ call, sessions }: Pick<QuestionContext, 'call' | 'sessions'>): Lists {
  const kept = new Map<string, { readonly names: readonly string[] | undefined }>();
  return {
    of: async ({ sender, ref }, signal) => {
      const known = kept.get(sender);
      if (known || !call.operations) return known?.names;
      try {
        const names = await call.operations(sender, { signal, sessions, ...(ref !== undefined && { ref }) });
        putBounded(kept, sender, { names }, MAX_LISTS);
        return names;
      } catch (error) {
        // A seller that cannot list its operations is remembered as such. After any other error, its list is requested
        // again later.
        if (failureOf(error).kind === 'no-operation')
          putBounded(kept, sender, { names: undefined }, MAX_LISTS);
        return undefined;
      }
    },
    forget: (sender) => void kept.delete(sender),
  };
}

/**
 * Returns a function that asks a seller about a task with the first operation that the seller has. If the answer is
 * `completed` without a result, asks once more.
 */
export function questioner(
  context: QuestionContext,
): (task: PolledTask, signal: AbortSignal) => Promise<TaskSeen> {
  const { call, sessions, transport, query } = context;
  const lists = context.lists ?? listsOf(context);
  /** The index of the request in `queries` that a seller answered, by seller; absent: the first one. */
  const known = new Map<string, number>();

  const askBy = async (of: TaskQuery, task: PolledTask, signal: AbortSignal) => {
    const { sender, ref } = task;
    const how = { signal, sessions, ...(ref !== undefined && { ref }) };
    return taskSeenIn(await call(sender, of.operation, of.arguments, how), task);
  };

  const first = async (queries: readonly TaskQuery[], task: PolledTask, signal: AbortSignal) => {
    const { sender } = task;
    for (let at = known.get(sender) ?? 0; ; at += 1) {
      const of = queries[at] ?? queries[0];
      if (!of) throw new ConfigError('query: no question was given.');
      try {
        const seen = await askBy(of, task, signal);
        if (at > 0) putBounded(known, sender, at, MAX_LISTS);
        return { of, seen };
      } catch (error) {
        const { kind } = failureOf(error);
        if (mayGoOn(kind, of) && at + 1 < queries.length) continue;
        // After an error, the next poll begins with the first request again, because the seller may support that one by
        // then.
        known.delete(sender);
        if (kind === 'no-operation') lists.forget(sender);
        throw error;
      }
    }
  };

  return async (task, signal) => {
    const by = transport(task.sender);
    const own = ownQuery(query?.(task));
    const queries = own ? [own] : queriesFor(by, task, await lists.of(task, signal));
    const { of, seen } = await first(queries, task, signal);
    if (seen.status !== 'completed' || seen.data !== undefined) return seen;
    const again = by === 'tool' ? { ...of, arguments: { ...of.arguments, include_result: true } } : of;
    return askBy(again, task, signal);
  };
}

/**
 * True if the next form of the request is to be tried, because the seller lacks the operation. After A2A's own
 * `tasks/get` (its only argument is `id`), the answer `unknown` counts too: that method knows no tasks that began
 * inside a call.
 */
const mayGoOn = (kind: PollFailure['kind'], { arguments: { id } }: TaskQuery): boolean =>
  kind === 'no-operation' || (kind === 'unknown' && id !== undefined);

/**
 * Returns the request of the option `query`; undefined if the option gives none.
 * @throws ConfigError for a wrong value, because the client would fail with a less clear error.
 */
function ownQuery(given: unknown): TaskQuery | undefined {
  if (given === undefined || given === null) return undefined;
  const { operation, arguments: args } = given as Partial<TaskQuery>;
  if (typeof operation === 'string' && operation !== '' && isJsonObject(args))
    return { operation, arguments: args };
  throw new ConfigError(
    'query: give { operation, arguments }, a name and an object, or undefined for the default query.',
  );
}
