import type { Health } from '../config/reports.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { hasReports, streamIn } from '../windows/stream.ts';

/*
 * Media buys whose account of reports nobody keeps up to date (owed.md §5.3): no process runs a reconciler, or none that
 * keeps up. Looked up for `receiver.health`.
 */

type Unreconciled = NonNullable<Health['unreconciled']>;

/** A stream is looked at within seconds of when it is due. Ms. */
const OVERDUE_MS = 3_600_000;
/** If nobody reconciles, the first ones are overdue like all others. */
const MOST_READ = 100;
/** It changes slowly, and health is asked for often. Ms. */
const ASK_EVERY_MS = 60_000;

/** @returns those of the last lookup if the store does not answer within the time. */
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
      // What is wrong with the store `store` says.
      await settledWithin(
        ask().catch(() => undefined),
        patienceMs,
      );
    }
    return last;
  };
}
