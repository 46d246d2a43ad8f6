import type { Completion, EffectRow } from '../processes/backends.ts';
import type { FinalState } from '../processes/ground.ts';
import type { Line } from '../processes/ledger.ts';
import type { Planned } from './traffic.ts';

/** What truly happened, once nothing is under way any more. */
export interface Facts {
  readonly events: readonly Planned[];
  /** Keys of which a seller was told that they are safe. */
  readonly acknowledged: ReadonlySet<string>;
  readonly states: ReadonlyMap<string, FinalState>;
  /** As the database has noted them, in order. */
  readonly completions: readonly Completion[];
  /** As handlers have noted it, in order. */
  readonly ledger: readonly Line[];
  /** Committed by `ctx.transaction`. */
  readonly effects: readonly EffectRow[];
}

/** What breaks the promise, each with its keys. All empty: it was kept. */
export interface KillVerdict {
  /** Acknowledged, but neither handled and completed, nor stale by a newer status that was. */
  readonly lost: readonly string[];
  /** Became `applied` more than once, or two owners were told that they completed it. */
  readonly completedTwice: readonly string[];
  /** An effect of `ctx.transaction` is there twice, or there is one of an event that was not completed. */
  readonly effectsTwice: readonly string[];
  /** A status was completed after a newer one of its task. */
  readonly backwards: readonly string[];
  /** Runs of one event were handed different copies of it. */
  readonly otherCopy: readonly string[];
}

function counted(keys: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

const keysOf = (list: readonly { readonly key: string }[]): readonly string[] => list.map(({ key }) => key);

/** The newest completed status of each task, Unix ms; and which were completed after a newer one. */
function orderOf(facts: Facts): { newest: Map<string, number>; backwards: string[] } {
  const tasks = new Map(facts.events.map(({ key, task }) => [key, task]));
  const newest = new Map<string, number>();
  const backwards: string[] = [];
  for (const { key } of facts.completions) {
    const task = tasks.get(key);
    if (!task) continue;
    const mark = newest.get(task.id) ?? 0;
    if (task.at < mark) backwards.push(key);
    else newest.set(task.id, task.at);
  }
  return { newest, backwards };
}

function completedTwice({ completions, ledger }: Facts): string[] {
  const owners = new Map<string, Set<string>>();
  for (const line of ledger) {
    if (line.what !== 'told') continue;
    owners.set(line.key, (owners.get(line.key) ?? new Set()).add(line.owner));
  }
  const noted = [...counted(keysOf(completions))].filter(([, times]) => times > 1).map(([key]) => key);
  const told = [...owners].filter(([, { size }]) => size > 1).map(([key]) => key);
  return [...new Set([...noted, ...told])];
}

function otherCopies(all: readonly EffectRow[]): string[] {
  const first = new Map<string, string>();
  const others = new Set<string>();
  for (const { key, copy } of all) {
    if ((first.get(key) ?? copy) !== copy) others.add(key);
    first.set(key, copy);
  }
  return [...others];
}

/** Judges by what happened, not by what the library says of it. */
export function judge(facts: Facts): KillVerdict {
  const { events, acknowledged, states, completions, ledger, effects } = facts;
  const { newest, backwards } = orderOf(facts);
  const completed = new Set(keysOf(completions));
  const outside = ledger.filter((line) => line.what === 'effect');
  const handled = new Set([...keysOf(effects), ...keysOf(outside)]);
  const inTransactions = counted(keysOf(effects));

  const isKept = ({ key, task }: Planned): boolean => {
    const state = states.get(key);
    if (state === 'applied') return completed.has(key) && handled.has(key);
    return state === 'stale' && task !== undefined && (newest.get(task.id) ?? 0) > task.at;
  };
  return {
    lost: events.filter((event) => acknowledged.has(event.key) && !isKept(event)).map(({ key }) => key),
    completedTwice: completedTwice(facts),
    effectsTwice: [...inTransactions]
      .filter(([key, times]) => times > 1 || !completed.has(key))
      .map(([key]) => key),
    backwards,
    otherCopy: otherCopies([...effects, ...outside]),
  };
}
