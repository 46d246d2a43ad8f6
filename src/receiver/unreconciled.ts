// Finds media buys whose reports are not reconciled (compared with the reports that are due), because no process does
// it fast enough (owed.md §5.3).
// Called by `receiver.health`, if there are registrations.

import type { Health } from '../config/reports.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { hasReports, streamIn } from '../windows/stream.ts';

type Unreconciled = NonNullable<Health['unreconciled']>;

/**
 * The time after which a media buy that is due counts as not reconciled, ms. A running reconciler checks each media buy
 * within seconds of its due time.
 */
const OVERDUE_MS = 3_600_000;
/**
 * The number of media buys that are read. Without a reconciler all are overdue, so the first ones are enough to notice
 * that none runs.
 */
const MOST_READ = 100;
/** Minimum time between two reads of media buys, ms. The result changes slowly, and `health()` is called often. */
const ASK_EVERY_MS = 60_000;

/**
 * Makes the function that finds media buys whose reports are not reconciled.
 * @returns a function, whose result is the previous one if the store does not answer within `patienceMs`.
 */
export function createUnreconciled(
  rows: StoreRegistrations,
  now: () => number,
  patienceMs: number,
): () => Promise<Unreconciled> {
  let last: Unreconciled = [];
  let askedAt = -Infinity;

  async function ask(): Promise<void> {
    const page = await rows.page({ kind: 'stream', limit: MOST_READ });
    const until = await rows.run('', (_rows, at) => at - OVERDUE_MS);
    last = page.rows.flatMap((row) => {
      if (row.dueAt === null || row.dueAt > until) return [];
      const stream = streamIn(row.value);
      if (!hasReports(stream)) return [];
      return [{ agentUrl: row.sender, mediaBuyId: stream.mediaBuyId, dueAt: row.dueAt }];
    });
  }

  return async () => {
    if (Math.abs(now() - askedAt) >= ASK_EVERY_MS) {
      askedAt = now();
      // A failure is ignored here, because the member `store` of `Health` reports the store's faults.
      await settledWithin(
        ask().catch(() => undefined),
        patienceMs,
      );
    }
    return last;
  };
}
