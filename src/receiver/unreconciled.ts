// Finds media buys whose reports are not reconciled, because no process does it or none is fast enough (owed.md
// §5.3).
// Called by `receiver.health`, if there are registrations.

import type { Health } from '../config/reports.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { hasReports, streamIn } from '../windows/stream.ts';

type Unreconciled = NonNullable<Health['unreconciled']>;

/**
 * A reconciler checks each media buy within seconds of its due time. If one is an hour late, no reconciler is
 * running. Ms.
 */
const OVERDUE_MS = 3_600_000;
/** Media buys that are read. Without a reconciler all are overdue, so the first ones are sufficient. */
const MOST_READ = 100;
/** Minimum time between two reads, because the result changes slowly and health is asked often. Ms. */
const ASK_EVERY_MS = 60_000;

/**
 * Makes the function that finds them.
 * @returns the previous result if the store does not answer within `patienceMs`.
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
      // Faults of the store are reported in `store`.
      await settledWithin(
        ask().catch(() => undefined),
        patienceMs,
      );
    }
    return last;
  };
}
