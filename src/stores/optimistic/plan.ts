// Makes calls of plans (functions that decide row changes), and groups due rows by sender.
// Called by optimistic-store.ts and lease-due.ts.
import type { Backend, Row, Scope } from '../backend.ts';
import type { DriverRows, PlanRequest } from './plan-rows.ts';
import type { QueuedPlan } from './batch-commit.ts';

/** The conditions and the size of a call, besides its plan. */
export type Ask = Pick<PlanRequest, 'isBarrier' | 'guessesAbsent' | 'limits'> & {
  readonly bytes?: number;
  readonly scopes?: readonly Scope[];
};

/** The conditions of a call that needs a commit only if it writes something. */
export const READING: Ask = { isBarrier: () => false, guessesAbsent: false };

export type Plan<T> = (rows: DriverRows, now: number) => T;

export function queuedPlan<T>(
  plan: Plan<T>,
  ask: Ask,
  resolve: (answer: T) => void,
  reject: (error: unknown) => void,
): QueuedPlan {
  const { isBarrier, guessesAbsent, limits } = ask;
  return {
    plan,
    isBarrier,
    guessesAbsent,
    ...(limits && { limits }),
    tries: 0,
    resolve: (answer) => resolve(answer as T),
    reject,
  };
}

/** Due rows that a query found, and the calls over these rows, which run together. */
interface FoundGroup {
  readonly rows: Row[];
  readonly requests: QueuedPlan[];
}

/**
 * Groups due rows by sender if all rows of one commit must belong to one sender (`bySender`). Otherwise there is one
 * group, named ''.
 */
export function foundGroups(
  found: readonly Row[],
  { bySender }: Pick<Backend, 'bySender'>,
): ReadonlyMap<string, FoundGroup> {
  const groups = new Map<string, FoundGroup>();
  for (const row of found) {
    const name = bySender ? row.scope.sender : '';
    const group = groups.get(name) ?? { rows: [], requests: [] };
    group.rows.push(row);
    groups.set(name, group);
  }
  return groups;
}
