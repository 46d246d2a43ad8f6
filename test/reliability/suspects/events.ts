import { samplePayloads } from '../../../src/testing/index.ts';
import { owedOf, type Planned } from '../kill/traffic.ts';
import type { Ground } from '../processes/ground.ts';
import { type FinalState, judge } from '../processes/judge.ts';
import type { Orders } from '../processes/wire.ts';

/** A run in numbers, for test/README.md. */
export interface Outcome {
  readonly events: number;
  /** Events of which the seller was told that they are safe. */
  readonly acknowledged: number;
  /** Answers that no seller should get. */
  readonly unexpected: readonly string[];
  /** Deaths of processes, or hangs of the store. */
  readonly faults: number;
  /** Acknowledged, and neither handled and completed nor meant to end DEAD. */
  readonly lost: readonly string[];
  /** Became `applied` more than once, or two owners were told that they completed it. */
  readonly twice: readonly string[];
  readonly dead: readonly string[];
  /** Runs of handlers. */
  readonly runs: number;
  /** Called in a process in which an earlier run of the same event had not ended. */
  readonly besideItself: readonly string[];
}

/** A delivery report: none waits for another. */
export function report(name: string, orders: Partial<Orders>): Planned {
  const key = `event-${name}-of-the-seller`;
  const given: Orders = { inTransaction: false, takesMs: 0, ...orders };
  const made = samplePayloads().report('scheduled', {}, { idempotency_key: key, context: given });
  return { key, orders: given, payload: () => made };
}

/** Delivers them all at once, each until its answer is final. */
export async function sell({ seller }: Ground, events: readonly Planned[]): Promise<Set<string>> {
  const acknowledged = new Set<string>();
  const one = async ({ key, payload }: Planned): Promise<void> => {
    if (await seller.deliver(payload(1), 'fresh')) acknowledged.add(key);
  };
  await Promise.all(events.map(one));
  return acknowledged;
}

/** Runs that were begun and have not ended, by event and process: a handler's last line is its effect. */
function besideItself({ ledger }: Ground): readonly string[] {
  const under = new Set<string>();
  const beside = new Set<string>();
  for (const { what, key, pid } of ledger.read()) {
    const run = `${key} in ${pid}`;
    if (what === 'effect' || what === 'die') under.delete(run);
    if (what !== 'run') continue;
    if (under.has(run)) beside.add(key);
    under.add(run);
  }
  return [...beside];
}

/** What became of them, once nothing is under way any more. @param faults by default the deaths of processes. */
export async function outcomeOf(
  ground: Ground,
  events: readonly Planned[],
  acknowledged: ReadonlySet<string>,
  faults?: number,
): Promise<Outcome> {
  const { completions, ledger } = await ground.finish();
  const states = new Map<string, FinalState>();
  for (const { key } of events) states.set(key, await ground.stateOf(key));
  const dead = events.map(({ key }) => key).filter((key) => states.get(key) === 'dead');
  const owed = owedOf(events, acknowledged, states).map((one) =>
    one.state === 'dead' ? { ...one, isExcused: true } : one,
  );
  const { lost, completedTwice } = judge({ owed, completions, ledger, effects: [] });
  return {
    events: events.length,
    acknowledged: events.filter(({ key }) => acknowledged.has(key)).length,
    unexpected: ground.seller.unexpected,
    faults: faults ?? ledger.filter(({ what }) => what === 'die').length,
    lost,
    twice: completedTwice,
    dead,
    runs: ledger.filter(({ what }) => what === 'run').length,
    besideItself: besideItself(ground),
  };
}
