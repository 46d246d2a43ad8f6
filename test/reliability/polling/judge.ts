import type { SellerLine } from '../market/wire.ts';
import type { Line } from '../processes/ledger.ts';
import { toldByKey } from '../market/judge.ts';

/** What is known when all is over: the seller's own log, and the buyer's. Both are read as orders of events. */
export interface PollFacts {
  readonly log: readonly SellerLine[];
  readonly ledger: readonly Line[];
  /** Polls of one seller at once that were promised. */
  readonly perSeller: number;
}

/** Task ids. All empty: the promise was kept. */
export interface PollVerdict {
  /** A poll began while another one of the task was under way: neither answered, nor its connection closed. */
  readonly overlapping: readonly string[];
  /** A poll began while as many of its seller as are promised were under way. */
  readonly crowding: readonly string[];
  /** A poll was decided on after the store had told a process that the end was completed. */
  readonly afterEnd: readonly string[];
  /** The seller was asked more often than the pollers say. */
  readonly unaccounted: readonly string[];
}

interface UnderWay {
  readonly taskId: string;
  readonly agent: string;
}

function fromSeller({ log, perSeller }: PollFacts): Pick<PollVerdict, 'overlapping' | 'crowding'> {
  const underWay = new Map<string, UnderWay>();
  const overlapping: string[] = [];
  const crowding: string[] = [];
  const begin = (id: string, { taskId, agent }: UnderWay): void => {
    const polls = [...underWay.values()];
    if (polls.some((poll) => poll.taskId === taskId)) overlapping.push(taskId);
    if (polls.filter((poll) => poll.agent === agent).length >= perSeller) crowding.push(taskId);
    underWay.set(id, { taskId, agent });
  };
  for (const line of log) {
    if (line.what === 'poll') begin(line.id, line);
    if (line.what === 'polled' || line.what === 'cut') underWay.delete(line.id);
    // Its connections died with it.
    if (line.what === 'start') underWay.clear();
  }
  return { overlapping, crowding };
}

function fromBuyer({ ledger }: PollFacts): readonly string[] {
  const told = toldByKey(ledger);
  const turns = new Map<string, number>();
  const ended = new Map<string, number>();
  const late: string[] = [];
  for (const [index, line] of ledger.entries()) {
    if (line.what === 'turn') turns.set(line.key, index);
    if (line.what === 'told') {
      const { taskId, resultId } = told.get(line.key) ?? {};
      if (taskId !== undefined && resultId !== undefined && !ended.has(taskId)) ended.set(taskId, index);
    }
    if (line.what !== 'ask') continue;
    const decided = turns.get(line.key);
    if (decided === undefined) throw new Error(`a poll that was never decided on: ${JSON.stringify(line)}`);
    if (decided > (ended.get(line.taskId) ?? Infinity)) late.push(line.taskId);
  }
  return late;
}

function countBy(taskIds: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const taskId of taskIds) counts.set(taskId, (counts.get(taskId) ?? 0) + 1);
  return counts;
}

export function judgePolls(facts: PollFacts): PollVerdict {
  const { log, ledger } = facts;
  const asked = countBy(ledger.flatMap((line) => (line.what === 'ask' ? line.taskId : [])));
  const polls = countBy(log.flatMap((line) => (line.what === 'poll' ? line.taskId : [])));
  return {
    ...fromSeller(facts),
    afterEnd: fromBuyer(facts),
    unaccounted: [...polls].flatMap(([taskId, count]) => (count > (asked.get(taskId) ?? 0) ? taskId : [])),
  };
}
