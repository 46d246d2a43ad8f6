import { type MarketFacts, toldByKey } from '../market/judge.ts';
import type { AgentPolicy, SellerLine, Task } from '../market/wire.ts';

/** Ms: of so many, how long it took. */
export interface Spread {
  readonly count: number;
  readonly median: number;
  readonly p95: number;
  readonly most: number;
}

function spreadOf(times: readonly number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { count: sorted.length, median: at(0.5), p95: at(0.95), most: at(1) };
}

/** By which channel a result was told that was completed, and when its handler began first. */
function known({
  completions,
  ledger,
}: MarketFacts): ReadonlyMap<string, { readonly source: string; readonly at: number }> {
  const told = toldByKey(ledger);
  const first = new Map<string, number>();
  for (const line of ledger) {
    if (line.what === 'run' && line.at !== undefined && !first.has(line.key)) first.set(line.key, line.at);
  }
  return new Map(
    completions.flatMap(({ key }) => {
      const { source, resultId } = told.get(key) ?? {};
      return source !== undefined && resultId !== undefined
        ? [[resultId, { source, at: first.get(key) ?? 0 }] as const]
        : [];
    }),
  );
}

/** From the seller's end of a task until its handler began, by the channel that told it first. */
function timesToKnow(tasks: readonly Task[], facts: MarketFacts): Record<string, Spread> {
  const ends = known(facts);
  const times: Record<string, number[]> = {};
  for (const { resultId, steps } of tasks) {
    const end = ends.get(resultId);
    if (end) (times[end.source] ??= []).push(Math.max(0, end.at - (steps.at(-1)?.at ?? 0)));
  }
  return Object.fromEntries(Object.entries(times).map(([source, all]) => [source, spreadOf(all)]));
}

/** From the death of a process until another one polled its task. */
function timesToTakeOver(log: readonly SellerLine[], killed: readonly string[]): Spread {
  return spreadOf(
    killed.flatMap((pollId) => {
      const cut = log.findIndex((line) => line.what === 'cut' && line.id === pollId);
      const line = log[cut];
      if (line?.what !== 'cut') return [];
      const next = log.slice(cut).find((one) => one.what === 'poll' && one.taskId === line.taskId);
      return next ? next.at - line.at : [];
    }),
  );
}

export function pollFigures(
  agents: readonly AgentPolicy[],
  facts: MarketFacts,
  log: readonly SellerLine[],
  killed: readonly string[],
): Readonly<Record<string, unknown>> {
  const count = (what: SellerLine['what'], agent?: string): number =>
    log.filter(
      (line) => line.what === what && (agent === undefined || ('agent' in line && line.agent === agent)),
    ).length;
  return {
    tasks: facts.tasks.length,
    polls: count('poll'),
    cut: count('cut'),
    takenOverMs: timesToTakeOver(log, killed),
    bySeller: Object.fromEntries(
      agents.map(({ name, drops }) => {
        const tasks = facts.tasks.filter(({ agent }) => agent === name);
        return [
          `${name}, ${drops} % dropped`,
          { tasks: tasks.length, polls: count('poll', name), knownMs: timesToKnow(tasks, facts) },
        ];
      }),
    ),
  };
}
