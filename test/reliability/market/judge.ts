import type { OperationSeen } from '../../../src/registrations/index.ts';
import type { Completion, EffectRow } from '../processes/backends.ts';
import type { Line, ToldOfTask } from '../processes/ledger.ts';
import type { Task } from './wire.ts';

/** What is known when all is over. */
export interface Facts {
  /** The seller's own list. Each has ended. */
  readonly tasks: readonly Task[];
  /** As the buyer's store noted them, in their order. */
  readonly completions: readonly Completion[];
  /** What `ctx.transaction` has committed; undefined where the store has none. */
  readonly effects?: readonly EffectRow[];
  readonly ledger: readonly Line[];
  /** What `registrations.list` names; `ref` is the order's name. */
  readonly operations: readonly OperationSeen[];
}

/** By the names of orders. All empty: the promise was kept. */
export interface MarketVerdict {
  /** The seller has a result that no handler completed, and the operation is not named `orphaned`. */
  readonly lost: readonly string[];
  /** More than one event of a result was completed, or one event by two owners. */
  readonly completedTwice: readonly string[];
  /** The effect in the transaction is there more than once, or not as often as the result was completed. */
  readonly effectsWrong: readonly string[];
  /** A status was completed after a later one, or twice. */
  readonly backwards: readonly string[];
  /** The seller has done it more than once: it was asked again under another key. */
  readonly doneTwice: readonly string[];
}

/** What the event of each key told: every run of its handler wrote it down before anything else. */
export function toldByKey(ledger: readonly Line[]): ReadonlyMap<string, ToldOfTask> {
  return new Map(
    ledger.flatMap((line): (readonly [string, ToldOfTask])[] =>
      line.what === 'run' && line.told ? [[line.key, line.told]] : [],
    ),
  );
}

/** By what a text says of each. */
function groups<T>(all: readonly T[], of: (one: T) => string | undefined): ReadonlyMap<string, readonly T[]> {
  const by = new Map<string, T[]>();
  for (const one of all) {
    const name = of(one);
    if (name === undefined) continue;
    const group = by.get(name);
    if (group) group.push(one);
    else by.set(name, [one]);
  }
  return by;
}

/** A status before the first of the seller's own: `submitted`. */
const BEFORE_ALL = -1;

export function judge({ tasks, completions, effects, ledger, operations }: Facts): MarketVerdict {
  const told = toldByKey(ledger);
  const orphaned = new Set(operations.flatMap(({ state, ref }) => (state === 'orphaned' ? (ref ?? []) : [])));
  const ends = groups(completions, ({ key }) => told.get(key)?.resultId);
  const written = groups(effects ?? [], ({ key }) => told.get(key)?.resultId);
  const ofTask = groups(completions, ({ key }) => told.get(key)?.taskId);
  const named = (wrong: (task: Task) => boolean): string[] => tasks.filter(wrong).map(({ name }) => name);
  const count = (by: ReadonlyMap<string, readonly unknown[]>, { resultId }: Task): number =>
    by.get(resultId)?.length ?? 0;
  const goesBack = ({ taskId }: Task): boolean => {
    const steps = (ofTask.get(taskId) ?? []).map(({ key }) => told.get(key)?.step ?? BEFORE_ALL);
    return steps.some((step, index) => index > 0 && step <= (steps[index - 1] ?? BEFORE_ALL));
  };
  return {
    lost: named((task) => count(ends, task) === 0 && !orphaned.has(task.name)),
    completedTwice: named((task) => count(ends, task) > 1),
    effectsWrong: effects ? named((task) => count(written, task) !== Math.min(1, count(ends, task))) : [],
    backwards: named(goesBack),
    doneTwice: [...groups(tasks, ({ name }) => name)].flatMap(([name, { length }]) =>
      length > 1 ? name : [],
    ),
  };
}
