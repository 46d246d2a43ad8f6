// Repeats calls that were not settled, in any number of processes; each call is made by one process at a time.
// `registrations.start` runs it. The loops of subscriptions and moves wait in the same way.
import { beforeDeadline } from './call-deadline.ts';
import type { OperationName, OperationSeen } from './operation.ts';
import type { DueOperations, Operation } from './operations.ts';

/** The outcomes that the loop reports. */
export type RepeaterNews =
  /** The call cannot be repeated: the seller may have forgotten the request, or its stored arguments are lost. */
  | { readonly kind: 'orphaned'; readonly operation: OperationSeen }
  /** The call was not made or not answered, or the seller has refused it (`SellerError`). */
  | { readonly kind: 'failed'; readonly operation: OperationName; readonly error: unknown }
  /** The store could not be read. */
  | { readonly kind: 'store'; readonly error: unknown };

export interface RepeaterOptions {
  readonly due: (max: number) => Promise<DueOperations>;
  /** Makes the call, and settles the operation. */
  readonly make: (operation: Operation, signal: AbortSignal) => Promise<unknown>;
  /** Reports an outcome. It rejects if the operation could not be read from the store. */
  readonly tell: (news: RepeaterNews) => Promise<void>;
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The time after which a call is aborted, before another process makes it too. Ms. */
  readonly deadlineMs: number;
}

/** Repeats calls that were not settled, in any number of processes; each call is made by one process at a time. */
export interface Repeater {
  /** Runs until the signal aborts. It then begins no more calls, and resolves when the running calls have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

/**
 * The longest wait between two checks for due calls. If a process dies, another one finds its operation within this
 * time. Ms.
 */
export const LOOK_MS = 10_000;

/** The shortest wait. It keeps the loop from spinning if the store says that calls are due but returns none. Ms. */
const LEAST_MS = 100;

/**
 * Returns the wait until the next check.
 * @param nextDueMs the time until something is due; undefined: the store does not know.
 */
export const untilNextLook = (nextDueMs: number = LOOK_MS): number =>
  Math.max(LEAST_MS, Math.min(nextDueMs, LOOK_MS));

/** The number of calls that one check starts. They run concurrently. */
const MOST = 10;

export function repeaterOf({ due, make, tell, sleep, deadlineMs }: RepeaterOptions): Repeater {
  const deadline = { ms: deadlineMs, reason: 'The call took too long.', sleep };
  const repeat = async (operation: Operation, stopping: AbortSignal): Promise<void> => {
    try {
      // The loop does not wait longer for a call that takes too long, so the other calls go on.
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
