import { allRows } from '../registrations/operation-rows.ts';
import { type OperationState, storedIn } from '../registrations/operation.ts';
import { watchIn } from '../registrations/watch-task.ts';
import type { StoreRegistrations } from '../stores/store.ts';

/*
 * The operations in an account (owed.md §9).
 */

/** The operations of the seller, or of all sellers, by how they stand. */
export interface TaskCounts {
  readonly ended: number;
  /** Calls without an answer, and tasks that have not ended. */
  readonly open: number;
  /** Tasks that are no longer polled, and have not ended. */
  readonly unresolved: number;
  /** Calls of which nobody knows if they were performed. */
  readonly orphaned: number;
  /** The time of registration of the oldest of them, Unix ms; absent if there is none. */
  readonly since?: number;
}

const STATES: Readonly<Record<OperationState, 'ended' | 'open' | 'orphaned' | undefined>> = {
  calling: 'open',
  open: 'open',
  ended: 'ended',
  orphaned: 'orphaned',
  refused: undefined,
};

export async function tasksOf(rows: StoreRegistrations, agentUrl: string | undefined): Promise<TaskCounts> {
  const of = agentUrl === undefined ? {} : { sender: agentUrl };
  const counts = { ended: 0, open: 0, orphaned: 0, unresolved: 0 };
  let since = Infinity;
  for await (const row of allRows(rows, { kind: 'operation', ...of })) {
    const { state, createdAt } = storedIn(row);
    const as = STATES[state];
    if (!as) continue;
    counts[as] += 1;
    since = Math.min(since, createdAt);
  }
  for await (const row of allRows(rows, { kind: 'watch', list: 'unresolved', ...of })) {
    since = Math.min(since, watchIn(row).since);
    counts.unresolved += 1;
  }
  return { ...counts, ...(since < Infinity && { since }) };
}
