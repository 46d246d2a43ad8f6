import type { Backend, Row, Scope } from '../backend.ts';
import type { DriverRows, PlanRequest } from './plan-rows.ts';
import type { QueuedPlan } from './batch-commit.ts';

/** What is said of an operation beside its plan. */
export type Ask = Pick<PlanRequest, 'isBarrier' | 'guessesAbsent' | 'limits'> & {
  readonly bytes?: number;
  readonly scopes?: readonly Scope[];
};

/** Only what was written is a word that has to be kept. */
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

/** Rows that a look has found, and plans over them, which run together. */
interface FoundGroup {
  readonly rows: Row[];
  readonly requests: QueuedPlan[];
}

/** By sender where the backend needs that, so that each row is read for the plans of its sender alone; else one, named ''. */
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
