import type { OperationSeen } from '../../../src/registrations/index.ts';
import { type Facts, judge, KEPT, type Owed, type Place, type Verdict } from '../processes/judge.ts';
import type { Line, ToldOfTask } from '../processes/ledger.ts';
import type { Task } from './wire.ts';

/** What is known when all is over. */
export interface MarketFacts extends Pick<Facts, 'completions' | 'ledger' | 'effects'> {
  /** The seller's own list. Each has ended. */
  readonly tasks: readonly Task[];
  /** What `registrations.list` names; `ref` is the order's name. */
  readonly operations: readonly OperationSeen[];
}

export interface MarketVerdict extends Verdict {
  /** Orders that the seller has done more than once: it was asked again under another key. */
  readonly doneTwice: readonly string[];
}

export const MARKET_KEPT: MarketVerdict = { ...KEPT, doneTwice: [] };

/** What the event of each key told: every run of its handler wrote it down before anything else. */
export function toldByKey(ledger: readonly Line[]): ReadonlyMap<string, ToldOfTask> {
  return new Map(
    ledger.flatMap((line): (readonly [string, ToldOfTask])[] =>
      line.what === 'run' && line.told ? [[line.key, line.told]] : [],
    ),
  );
}

/** A status before the first of the seller's own: `submitted`. */
const BEFORE_ALL = -1;

/** Each result of the seller is owed, by whichever channel, unless the buyer is told that nobody knows: `orphaned`. */
function owedOf({ tasks, operations }: MarketFacts, told: ReadonlyMap<string, ToldOfTask>): readonly Owed[] {
  const orphaned = new Set(operations.flatMap(({ state, ref }) => (state === 'orphaned' ? (ref ?? []) : [])));
  const keys = new Map<string, string[]>();
  for (const [key, { resultId }] of told) {
    if (resultId !== undefined) keys.set(resultId, [...(keys.get(resultId) ?? []), key]);
  }
  return tasks.map(({ name, resultId }) => ({
    name,
    keys: keys.get(resultId) ?? [],
    isExcused: orphaned.has(name),
  }));
}

/** Statuses by the seller's own numbers. */
const placesOf = (
  tasks: readonly Task[],
  told: ReadonlyMap<string, ToldOfTask>,
): ReadonlyMap<string, Place> => {
  const known = new Set(tasks.map(({ taskId }) => taskId));
  return new Map(
    [...told].flatMap(([key, { taskId, step = BEFORE_ALL }]) =>
      known.has(taskId) ? [[key, { task: taskId, at: step }] as const] : [],
    ),
  );
};

export function judgeMarket(facts: MarketFacts): MarketVerdict {
  const { tasks, ledger } = facts;
  const told = toldByKey(ledger);
  const names = tasks.map(({ name }) => name);
  return {
    ...judge({ ...facts, owed: owedOf(facts, told), places: placesOf(tasks, told) }),
    doneTwice: [...new Set(names.filter((name, at) => names.indexOf(name) !== at))],
  };
}
