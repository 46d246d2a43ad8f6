// Counts operations (calls to sellers, and the tasks that they started), and lists those that need attention
// (owed.md §9). account.ts calls it. It reads all rows page by page, and keeps only the few that it lists.
import type { Hashes } from '../crypto/engine.ts';
import { allRows } from '../registrations/operation-rows.ts';
import { type OperationState, type Stored, storedIn } from '../registrations/operation.ts';
import { type Watch, watchIn } from '../registrations/watch-task.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';

/**
 * The counts of operations (calls and their tasks) by state, of one seller or of all, and those that need attention.
 */
export interface TaskCounts {
  readonly ended: number;
  /** The number of calls without an answer and of tasks that have not ended. */
  readonly open: number;
  /** The number of tasks that are no longer polled, but have not ended. */
  readonly unresolved: number;
  /** The number of calls for which it is unknown if the seller performed them. */
  readonly orphaned: number;
  /**
   * The time of registration of the oldest operation that is counted here, even if it has ended. Unix ms; absent if
   * there is none.
   */
  readonly since?: number;
  /**
   * The number of operations that were registered after the query's `since`, and of those that ended after it. Absent
   * if the query has no `since`. An operation whose end was stored by an earlier version of this package is not counted
   * as ended.
   */
  readonly changed?: { readonly registered: number; readonly ended: number };
  /**
   * Up to 100 operations that need attention, the oldest first. If there are more, unresolved and orphaned ones come
   * before open ones. With `since`, open ones are listed if they were registered after it. Orphaned ones are listed if
   * they were orphaned after it or at an unknown time. Unresolved ones are always listed.
   */
  readonly attention: readonly TaskAttention[];
  /** Up to 10 sellers with open operations. The seller with the oldest open operation comes first. */
  readonly sellers: readonly SellerBacklog[];
}

/** An operation (a call or its task) that has not ended. */
export interface TaskAttention {
  readonly agentUrl: string;
  readonly operationId: string;
  readonly taskType: string;
  /** Absent if the seller named no task. */
  readonly taskId?: string;
  /** Your own reference for the operation. */
  readonly ref?: string;
  /**
   * - `open`: the call was not answered yet, or its task has not ended.
   * - `unresolved`: the task has not ended, and is no longer polled.
   * - `orphaned`: it is unknown if the call was performed.
   */
  readonly state: 'open' | 'unresolved' | 'orphaned';
  /** The time at which the operation was registered, Unix ms on the store's clock. */
  readonly since: number;
  /** The time from `since` to the account's `asOf`, ms. */
  readonly ageMs: number;
  /** Advice in one sentence. Absent for an open operation. */
  readonly todo?: string;
}

/** The open operations of one seller. */
export interface SellerBacklog {
  readonly agentUrl: string;
  readonly open: number;
  /** The age of the seller's oldest open operation, ms. */
  readonly oldestMs: number;
}

/** The most operations that are listed, and the most sellers that are listed. */
const MOST_NAMED = 100;
const MOST_SELLERS = 10;

const ADVICE: Readonly<Record<'unresolved' | 'orphaned', string>> = {
  unresolved:
    'Ask the seller how the task ended and pass its answer to receiver.observe, or pass agentUrl, taskId and taskType to registrations.adopt, which has it polled again.',
  orphaned:
    'Ask the seller if it performed the call: if it did, pass its answer to receiver.observe, and if not, create the call again.',
};

const STATES: Readonly<Record<OperationState, 'ended' | 'open' | 'orphaned' | undefined>> = {
  calling: 'open',
  open: 'open',
  ended: 'ended',
  orphaned: 'orphaned',
  refused: undefined,
};

/** Selects the operations that are counted and listed. */
export interface TasksQuery {
  /** The agent URL of the seller; undefined: all sellers. */
  readonly agentUrl: string | undefined;
  /** Operations that have not changed since this time are not listed; undefined: all may be listed. */
  readonly since: number | undefined;
  readonly asOf: number;
}

interface TasksSource {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
}

/** An operation that may be listed. */
interface Candidate {
  readonly agentUrl: string;
  readonly operationId: string;
  readonly since: number;
  /** The stored data of the operation's task. Present if the task is no longer polled, but has not ended. */
  readonly watch?: Watch;
}

export async function tasksOf({ rows, hashes }: TasksSource, query: TasksQuery): Promise<TaskCounts> {
  const of = query.agentUrl === undefined ? {} : { sender: query.agentUrl };
  const counting = counter(query);
  for await (const row of allRows(rows, { kind: 'operation', ...of })) counting.operation(row, storedIn(row));
  const unresolved = oldest<Candidate>(MOST_NAMED);
  for await (const row of allRows(rows, { kind: 'watch', list: 'unresolved', ...of })) {
    const watch = watchIn(row);
    counting.unresolved(watch);
    const since = watch.begunAt ?? watch.since;
    unresolved.add({ agentUrl: row.sender, operationId: watch.operationId, since, watch });
  }
  const { counts, sellers, candidates } = counting.result();
  const named = await namedIn({ rows, hashes }, query, [...unresolved.all(), ...candidates]);
  return { ...counts, attention: attentionOf(named), sellers };
}

/**
 * Makes functions that count operations. The rows must come ordered by seller, because one seller is counted at a time.
 */
function counter({ since: from = -Infinity, asOf }: TasksQuery) {
  const counts = { ended: 0, open: 0, orphaned: 0, unresolved: 0 };
  const changed = { registered: 0, ended: 0 };
  const orphaned = oldest<Candidate>(MOST_NAMED);
  const open = oldest<Candidate>(MOST_NAMED);
  const backlogs = oldest<Backlog>(MOST_SELLERS);
  let since = Infinity;
  let backlog: Backlog = { agentUrl: '', open: 0, since: Infinity };
  const nextSeller = (agentUrl: string): void => {
    if (backlog.open > 0) backlogs.add(backlog);
    backlog = { agentUrl, open: 0, since: Infinity };
  };
  const add: Readonly<Record<'ended' | 'open' | 'orphaned', (one: Candidate, closedAt?: number) => void>> = {
    ended: (_one, closedAt = -Infinity) => {
      if (closedAt > from) changed.ended += 1;
    },
    open: (one) => {
      if (one.since > from) open.add(one);
      backlog = { ...backlog, open: backlog.open + 1, since: Math.min(backlog.since, one.since) };
    },
    orphaned: (one, closedAt = Infinity) => {
      if (Math.max(one.since, closedAt) > from) orphaned.add(one);
    },
  };
  return {
    operation: ({ sender: agentUrl, id: operationId }: RegistrationRow, stored: Stored): void => {
      if (agentUrl !== backlog.agentUrl) nextSeller(agentUrl);
      const as = STATES[stored.state];
      if (!as) return;
      counts[as] += 1;
      since = Math.min(since, stored.createdAt);
      if (stored.createdAt > from) changed.registered += 1;
      add[as]({ agentUrl, operationId, since: stored.createdAt }, stored.closedAt);
    },
    unresolved: (watch: Watch): void => {
      counts.unresolved += 1;
      since = Math.min(since, watch.since);
    },
    result: () => {
      nextSeller('');
      return {
        counts: {
          ...counts,
          ...(since < Infinity && { since }),
          ...(from > -Infinity && { changed }),
        },
        sellers: backlogs
          .all()
          .map(({ since: began, ...of }): SellerBacklog => ({ ...of, oldestMs: Math.max(0, asOf - began) })),
        candidates: [...orphaned.all(), ...open.all()],
      };
    },
  };
}

type Backlog = Pick<SellerBacklog, 'agentUrl' | 'open'> & { readonly since: number };

/** Makes a list that keeps only the `most` oldest of the items that are added. */
function oldest<T extends { readonly since: number }>(most: number) {
  let kept: T[] = [];
  const all = (): readonly T[] => (kept = kept.toSorted((a, b) => a.since - b.since).slice(0, most));
  return {
    all,
    add: (one: T): void => {
      kept.push(one);
      if (kept.length >= 2 * most) all();
    },
  };
}

/** Reads the current state of operations that may be listed, in one transaction for each seller. */
async function namedIn(
  { rows, hashes }: TasksSource,
  { asOf }: TasksQuery,
  candidates: readonly Candidate[],
): Promise<readonly TaskAttention[]> {
  const bySeller = new Map<string, Map<string, Candidate>>();
  for (const one of candidates) {
    const own = bySeller.get(one.agentUrl) ?? new Map<string, Candidate>();
    bySeller.set(one.agentUrl, own);
    // An operation whose task is no longer polled may be among the candidates twice, as unresolved and as open. The
    // first entry counts.
    if (!own.has(one.operationId)) own.set(one.operationId, one);
  }
  const found = await Promise.all(
    [...bySeller].map(([agentUrl, own]) =>
      rows.run(agentUrl, (step) => [...own.values()].map((one) => attentionIn(step, hashes, one, asOf))),
    ),
  );
  return found.flat().flatMap((one) => one ?? []);
}

/** Returns an operation as it is listed; undefined if it has ended meanwhile. */
function attentionIn(
  rows: RegistrationRows,
  hashes: Hashes,
  { agentUrl, operationId, since: began, watch }: Candidate,
  asOf: number,
): TaskAttention | undefined {
  const row = rows.get('operation', storedId(operationId, hashes));
  // If the operation's row has expired, the stored data of its task (`watch`) has what is still known.
  const stored = row ? storedIn(row) : undefined;
  const of = { ...watch, ...stored, taskId: watch?.taskId ?? stored?.taskId };
  const state = stateOf(rows, hashes, of);
  if (of.taskType === undefined || !state) return undefined;
  const since = stored?.createdAt ?? began;
  return {
    agentUrl,
    operationId,
    taskType: of.taskType,
    ...(of.taskId !== undefined && { taskId: of.taskId }),
    ...(of.ref !== undefined && { ref: of.ref }),
    state,
    since,
    ageMs: Math.max(0, asOf - since),
    ...(state !== 'open' && { todo: ADVICE[state] }),
  };
}

function stateOf(
  rows: RegistrationRows,
  hashes: Hashes,
  { taskId, state }: { readonly taskId: string | undefined; readonly state?: OperationState },
): TaskAttention['state'] | undefined {
  const task = taskId === undefined ? undefined : rows.get('watch', storedId(taskId, hashes));
  if (task?.list === 'unresolved') return 'unresolved';
  const is = state && STATES[state];
  return is === 'ended' ? undefined : is;
}

/**
 * Returns the operations to list: first those that need an action (`todo`). If there is room left, the oldest other
 * operations follow.
 */
function attentionOf(named: readonly TaskAttention[]): readonly TaskAttention[] {
  const inOrder = named.toSorted((a, b) => a.since - b.since);
  const first = inOrder.filter(({ todo }) => todo !== undefined).slice(0, MOST_NAMED);
  const rest = inOrder.filter(({ todo }) => todo === undefined).slice(0, MOST_NAMED - first.length);
  return [...first, ...rest].toSorted((a, b) => a.since - b.since);
}
