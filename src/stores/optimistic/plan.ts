import type { Scope } from '../backend.ts';
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
