// Makes a loop that checks rows of the store when they are due, a limited number at a time. The reconciler uses one
// loop to check media buys, and another one to request snapshots.
import { messageOf } from '../shared/errors.ts';
import { createThinning } from '../shared/logging.ts';
import type { RegistrationRow } from '../stores/store.ts';
import type { ReconcilerContext } from './context.ts';

/** The shortest wait between two searches for due rows. Ms. */
export const LEAST_MS = 100;

interface Looked {
  readonly kind: RegistrationRow['kind'];
  /** Checks one row. @param called a function that `look` calls if the row is due again immediately. */
  readonly look: (row: RegistrationRow, stopping: AbortSignal, called: () => void) => Promise<void>;
  /** The log message if a check, or a search for rows, fails. */
  readonly failed: string;
}

/** Makes a function that runs the loop until the signal aborts, and resolves when the running checks have ended. */
export function dueLoop(
  context: ReconcilerContext,
  { kind, look: lookAt, failed }: Looked,
): (stopping: AbortSignal) => Promise<void> {
  const { rows, parts, leaseMs, concurrency, sleep, lookMs } = context;
  const running = new Set<Promise<void>>();
  const thinning = createThinning();
  let idle = new AbortController();
  // Ends the loop's wait. After a call to a seller, the row is due again immediately, as it may need another call.
  const called = (): void => idle.abort();
  const begin = (row: RegistrationRow, stopping: AbortSignal): void => {
    const run = lookAt(row, stopping, called)
      .catch((error: unknown) => {
        if (thinning('store', parts.now()) === undefined) return;
        parts.logger.warn({ err: error, sender: row.sender }, failed);
      })
      .finally(() => running.delete(run));
    running.add(run);
  };
  const look = async (stopping: AbortSignal): Promise<number> => {
    const max = concurrency - running.size;
    try {
      const found = await rows.due({ kind, max, holdMs: leaseMs, senders: [] });
      for (const row of found.rows) begin(row, stopping);
      if (found.rows.length === max) return 0;
      return Math.max(LEAST_MS, Math.min(found.nextDueMs ?? lookMs, lookMs));
    } catch (error) {
      parts.logger.warn({ err: error, kind }, `The store cannot say what is due. ${messageOf(error)}`);
      return lookMs;
    }
  };
  return async (stopping) => {
    stopping.addEventListener('abort', () => idle.abort(), { once: true });
    while (!stopping.aborted) {
      if (running.size >= concurrency) {
        await Promise.race(running);
        continue;
      }
      idle = new AbortController();
      const idleMs = await look(stopping);
      if (idleMs > 0) await sleep(idleMs, idle.signal);
    }
    await Promise.all(running);
  };
}
