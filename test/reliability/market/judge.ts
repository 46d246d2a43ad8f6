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
  /** URLs of agents that do not know a request by its key: a call that was not answered is not repeated. */
  readonly forgetful: ReadonlySet<string>;
  /** Names of orders that the seller has refused. */
  readonly refused: ReadonlySet<string>;
  /** Names of orders: a process was told that the call was answered, and that its answer is kept. */
  readonly made: ReadonlySet<string>;
}

export interface MarketVerdict extends Verdict {
  /** Orders that the seller has done more than once: it was asked again under another key. */
  readonly doneTwice: readonly string[];
  /** Orders whose operation is named `orphaned`, though the rules have the call repeated, refused or answered. */
  readonly orphanedWrongly: readonly string[];
}

export const MARKET_KEPT: MarketVerdict = { ...KEPT, doneTwice: [], orphanedWrongly: [] };

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

/** The first answer is an error that names a media buy: it is orphaned at its first attempt (calls.md §1.9, §2.6). */
const isContradiction = ({ answers, steps }: Task): boolean =>
  answers === 'end' && steps.at(-1)?.status === 'failed';

/** Orders whose operation is orphaned, by whether the rules allow that. */
function orphansOf({ tasks, operations, forgetful, refused, made }: MarketFacts): {
  readonly allowed: ReadonlySet<string>;
  readonly wrong: readonly string[];
} {
  const of = new Map(tasks.map((task) => [task.name, task]));
  const isAllowed = ({ agentUrl, ref = '' }: OperationSeen): boolean => {
    if (made.has(ref)) return false;
    const task = of.get(ref);
    // A refusal after an attempt without an answer (§2.6). What the seller refuses it has not taken on.
    return forgetful.has(agentUrl) || (task ? isContradiction(task) : refused.has(ref));
  };
  const orphans = operations.filter(({ state }) => state === 'orphaned');
  const namesOf = (all: readonly OperationSeen[]): readonly string[] => all.map(({ ref = '' }) => ref);
  return {
    allowed: new Set(namesOf(orphans.filter(isAllowed))),
    wrong: namesOf(orphans.filter((one) => !isAllowed(one))),
  };
}

/** Each result of the seller is owed, by whichever channel, unless the rules let the buyer be told `orphaned`. */
function owedOf(
  tasks: readonly Task[],
  told: ReadonlyMap<string, ToldOfTask>,
  orphaned: ReadonlySet<string>,
): readonly Owed[] {
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
  const { allowed, wrong } = orphansOf(facts);
  return {
    ...judge({ ...facts, owed: owedOf(tasks, told, allowed), places: placesOf(tasks, told) }),
    doneTwice: [...new Set(names.filter((name, at) => names.indexOf(name) !== at))],
    orphanedWrongly: wrong,
  };
}
