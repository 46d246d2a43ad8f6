import type { Tally } from '../processes/seller.ts';
import type { Facts, Verdict } from './judge.ts';
import type { RunOptions } from './run.ts';

/** A run in numbers, for docs/reliability.md. */
export interface Figures {
  readonly store: string;
  readonly mode: string;
  readonly seed: number;
  readonly events: number;
  readonly acknowledged: number;
  /** kill -9 by the driver. */
  readonly kills: number;
  /** Processes that killed themselves in a handler, and that stopped in one until their lease was another's. */
  readonly deaths: number;
  readonly pauses: number;
  readonly starts: number;
  readonly posts: number;
  readonly unanswered: number;
  readonly told503: number;
  readonly toldReplayed: number;
  readonly completed: number;
  readonly stale: number;
  /** Runs of handlers beyond the first of an event: after kills, pauses, lapsed leases and failures. */
  readonly reruns: number;
  /** Effects outside the store that happened more than once: what `ctx.transaction` is for. */
  readonly outsideAgain: number;
  readonly inTransaction: number;
  readonly lost: number;
  readonly completedTwice: number;
  readonly effectsTwice: number;
  readonly seconds: number;
}

interface Measured {
  readonly tally: Tally;
  readonly kills: number;
  readonly starts: number;
  readonly seconds: number;
}

export function figuresOf(options: RunOptions, facts: Facts, verdict: Verdict, measured: Measured): Figures {
  const lines = (what: string): readonly string[] =>
    facts.ledger.filter((line) => line.what === what).map(({ key }) => key);
  const beyondFirst = (keys: readonly string[]): number => keys.length - new Set(keys).size;
  const { tally, kills, starts, seconds } = measured;
  return {
    store: options.kind,
    mode: options.mode,
    seed: options.seed,
    events: facts.events.length,
    acknowledged: facts.acknowledged.size,
    kills,
    deaths: lines('die').length,
    pauses: lines('pause').length,
    starts,
    posts: tally.attempts,
    unanswered: tally.unanswered,
    told503: tally.unavailable,
    toldReplayed: tally.replayed,
    completed: facts.completions.length,
    stale: [...facts.states.values()].filter((state) => state === 'stale').length,
    reruns: beyondFirst(lines('run')),
    outsideAgain: beyondFirst(lines('effect')),
    inTransaction: facts.effects.length,
    lost: verdict.lost.length,
    completedTwice: verdict.completedTwice.length,
    effectsTwice: verdict.effectsTwice.length,
    seconds: Math.round(seconds),
  };
}
