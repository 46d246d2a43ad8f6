import type { Completion, EffectRow } from './backends.ts';
import type { Line } from './ledger.ts';

/** How an event's record ends; `absent`: there is none. */
export type FinalState = 'queued' | 'leased' | 'applied' | 'stale' | 'dead' | 'absent';

/** Something that a seller has told, or done: it is to be handled once, by one of the events that tell it. */
export interface Owed {
  /** An event, a task, an order: what a verdict names. */
  readonly name: string;
  /** Keys of the events that tell it, also of those that were never completed. */
  readonly keys: Iterable<string>;
  /** It may be left as it is: nobody was told that it is safe, or somebody was told that it is not. */
  readonly isExcused?: boolean;
  /** As the store has it in the end, where it is one event. */
  readonly state?: FinalState;
}

/** A status among those of its task. */
export interface Place {
  readonly task: string;
  /** Greater for a later one. */
  readonly at: number;
}

/** What truly happened, once nothing is under way any more. */
export interface Facts {
  readonly owed: readonly Owed[];
  /** By key of an event that tells a status. */
  readonly places?: ReadonlyMap<string, Place>;
  /** As the database has noted them, in order. */
  readonly completions: readonly Completion[];
  /** As handlers have noted it, in order. */
  readonly ledger: readonly Line[];
  /** Committed by `ctx.transaction`; none where the store has no transactions. */
  readonly effects: readonly EffectRow[];
}

/** What breaks the promise, by names of what is owed. All empty: it was kept. */
export interface Verdict {
  /** Not completed and neither excused nor stale by a newer status that was; or completed, and no handler had its effect. */
  readonly lost: readonly string[];
  /** More than one completion of it, or two owners were told that they completed one event. */
  readonly completedTwice: readonly string[];
  /** An effect of `ctx.transaction` is there twice, or there is one of what was not completed. */
  readonly effectsTwice: readonly string[];
  /** Tasks: a status was completed after a later one, or twice. */
  readonly backwards: readonly string[];
  /** Runs of one event were handed different copies of it. */
  readonly otherCopy: readonly string[];
}

/** The promise was kept. */
export const KEPT: Verdict = {
  lost: [],
  completedTwice: [],
  effectsTwice: [],
  backwards: [],
  otherCopy: [],
};

function counted(all: readonly { readonly key: string }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of all) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

const sumOf = (counts: ReadonlyMap<string, number>, { keys }: Owed): number =>
  [...keys].reduce((sum, key) => sum + (counts.get(key) ?? 0), 0);

/** The newest completed status of each task, and the tasks of those that were completed after it. */
function orderOf({ completions, places }: Facts): {
  readonly newest: ReadonlyMap<string, number>;
  readonly backwards: readonly string[];
} {
  const newest = new Map<string, number>();
  const backwards = new Set<string>();
  for (const { key } of completions) {
    const place = places?.get(key);
    if (!place) continue;
    const mark = newest.get(place.task) ?? -Infinity;
    if (place.at <= mark) backwards.add(place.task);
    else newest.set(place.task, place.at);
  }
  return { newest, backwards: [...backwards] };
}

/** Events of which two owners were told that they completed them. */
function toldTwice(ledger: readonly Line[]): ReadonlySet<string> {
  const owners = new Map<string, string>();
  const twice = new Set<string>();
  for (const line of ledger) {
    if (line.what !== 'told') continue;
    if ((owners.get(line.key) ?? line.owner) !== line.owner) twice.add(line.key);
    owners.set(line.key, line.owner);
  }
  return twice;
}

function otherCopies(all: readonly EffectRow[]): readonly string[] {
  const first = new Map<string, string>();
  const others = new Set<string>();
  for (const { key, copy } of all) {
    if ((first.get(key) ?? copy) !== copy) others.add(key);
    first.set(key, copy);
  }
  return [...others];
}

/** Judges by what happened, not by what the library says of it. */
export function judge(facts: Facts): Verdict {
  const { owed, places, completions, ledger, effects } = facts;
  const { newest, backwards } = orderOf(facts);
  const outside = ledger.filter((line) => line.what === 'effect');
  const completed = counted(completions);
  const written = counted(effects);
  const handled = counted([...effects, ...outside]);
  const twice = toldTwice(ledger);

  const isOvertaken = (key: string): boolean => {
    const place = places?.get(key);
    return place !== undefined && (newest.get(place.task) ?? -Infinity) > place.at;
  };
  const isKept = (one: Owed): boolean => {
    const { keys, state, isExcused } = one;
    const isApplied = state === undefined || state === 'applied';
    if (sumOf(completed, one) > 0) return isApplied && sumOf(handled, one) > 0;
    return isExcused === true || (state === 'stale' && [...keys].some(isOvertaken));
  };
  const named = (isWrong: (one: Owed) => boolean): string[] => owed.filter(isWrong).map(({ name }) => name);
  return {
    lost: named((one) => !isKept(one)),
    completedTwice: named((one) => sumOf(completed, one) > 1 || [...one.keys].some((key) => twice.has(key))),
    effectsTwice: named((one) => sumOf(written, one) > Math.min(1, sumOf(completed, one))),
    backwards,
    otherCopy: otherCopies([...effects, ...outside]),
  };
}
