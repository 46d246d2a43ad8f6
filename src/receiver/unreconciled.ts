// Finds media buys whose reports nobody reconciles, because no process does or none keeps up (owed.md §5.3).
// Called by `receiver.health`, if there are registrations.

import type { Health } from '../config/reports.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { hasReports, streamIn } from '../windows/stream.ts';

type Unreconciled = NonNullable<Health['unreconciled']>;

/**
 * A reconciler looks at a stream within seconds of its due time, so an hour late means that none does. Ms.
 */
const OVERDUE_MS = 3_600_000;
/** Streams that are read: if nobody reconciles, the first ones are overdue like all others. */
const MOST_READ = 100;
/** Minimum time between two look-ups: the result changes slowly, and health is asked often. Ms. */
const ASK_EVERY_MS = 60_000;

/** @returns the last result if the store does not answer within the time. */
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
      // Faults of the store are reported in `store`.
      await settledWithin(
        ask().catch(() => undefined),
        patienceMs,
      );
    }
    return last;
  };
}
