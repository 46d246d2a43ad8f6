// Repeats calls whose answers were not recorded, in any number of processes; each call is made by one process at a
// time. `registrations.start` runs it. The loops of subscriptions and moves use its waiting times.
import { beforeDeadline } from './call-deadline.ts';
import type { OperationName, OperationSeen } from './operation.ts';
import type { DueOperations, Operation } from './operations.ts';

/** The outcomes that the loop of repeated calls reports. */
export type RepeaterNews =
  /** The call is never made again, e.g. because the seller may have forgotten the `idempotency_key`. */
  | { readonly kind: 'orphaned'; readonly operation: OperationSeen }
  /** The call was not made, was not answered, or was refused by the seller (`SellerError`). */
  | { readonly kind: 'failed'; readonly operation: OperationName; readonly error: unknown }
  /** The store could not be read. */
  | { readonly kind: 'store'; readonly error: unknown };

export interface RepeaterOptions {
  readonly due: (max: number) => Promise<DueOperations>;
  /** Makes the call, and records its answer in the operation. */
  readonly make: (operation: Operation, signal: AbortSignal) => Promise<unknown>;
  /** Reports an outcome, as an alarm or in the log. */
  readonly tell: (news: RepeaterNews) => Promise<void>;
  /** Waits for `ms`, or less if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The time after which a call is aborted, before another process may make the same call. Ms. */
  readonly deadlineMs: number;
}

/**
 * The loop that repeats calls whose answers were not recorded. Several processes may run it; each call is made by one
 * process at a time.
 */
export interface Repeater {
  /** Runs until the signal aborts. It then begins no more calls, and resolves when the running calls have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

/**
 * The longest wait between two checks for due calls. If a process dies, another process finds its calls within this
 * time after they are due. Ms.
 */
export const LOOK_MS = 10_000;

/** The shortest wait. It keeps the loop from spinning if the store says that calls are due but returns none. Ms. */
const LEAST_MS = 100;

/**
 * Returns the wait until the next check for due calls, ms.
 * @param nextDueMs the time until the next call is due; undefined: the store does not know.
 */
export const untilNextLook = (nextDueMs: number = LOOK_MS): number =>
  Math.max(LEAST_MS, Math.min(nextDueMs, LOOK_MS));

/** The largest number of calls that one check starts. They run concurrently. */
const MOST = 10;

export function repeaterOf({ due, make, tell, sleep, deadlineMs }: RepeaterOptions): Repeater {
  const deadline = { ms: deadlineMs, reason: 'The call took too long.', sleep };
  const repeat = async (operation: Operation, stopping: AbortSignal): Promise<void> => {
    try {
      // A call that takes too long is aborted and no longer awaited, so that the loop goes on with other calls.
      await beforeDeadline(deadline, stopping, (signal) => make(operation, signal));
    } catch (error) {
      const { agentUrl, operationId } = operation;
      await tell({ kind: 'failed', operation: { agentUrl, operationId }, error });
    }
  };
  const look = async (stopping: AbortSignal): Promise<number> => {
    try {
      const { operations, orphaned, failed, nextDueMs } = await due(MOST);
      for (const operation of orphaned) await tell({ kind: 'orphaned', operation });
      for (const { error, ...operation } of failed) await tell({ kind: 'failed', operation, error });
      await Promise.all(operations.map((operation) => repeat(operation, stopping)));
      return untilNextLook(nextDueMs);
    } catch (error) {
      await tell({ kind: 'store', error });
      return LOOK_MS;
    }
  };
  return {
    run: async (stopping) => {
      while (!stopping.aborted) await sleep(await look(stopping), stopping);
    },
  };
}
