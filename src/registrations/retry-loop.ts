import { beforeDeadline } from './call-deadline.ts';
import type { OperationName, OperationSeen } from './operation.ts';
import type { DueOperations, Operation } from './operations.ts';

/** What is reported to the owner. */
export type RepeaterNews =
  /** The call cannot be repeated: the seller may have forgotten the request, or its stored arguments are lost. */
  | { readonly kind: 'orphaned'; readonly operation: OperationSeen }
  /** The call was not made or not answered, or the seller has refused it (`SellerError`). */
  | { readonly kind: 'failed'; readonly operation: OperationName; readonly error: unknown }
  /** The store could not be asked. */
  | { readonly kind: 'store'; readonly error: unknown };

export interface RepeaterOptions {
  readonly due: (max: number) => Promise<DueOperations>;
  /** Makes the call, and settles the operation. */
  readonly make: (operation: Operation, signal: AbortSignal) => Promise<unknown>;
  /** Rejects where the store could not be asked how far the operation is. */
  readonly tell: (news: RepeaterNews) => Promise<void>;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A call is aborted after this time, before another process makes it too. Ms. */
  readonly deadlineMs: number;
}

/** Repeats calls whose caller has not settled them, in any number of processes: each by one at a time. */
export interface Repeater {
  /** Until the signal aborts: then it begins no more calls, and resolves when the running ones have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

/** The longest wait between two looks, and so the longest until the operation of a process that died is found. Ms. */
export const LOOK_MS = 10_000;

/** The shortest wait, also where the store says that a call is due: if it is wrong about that, it is not asked in a loop. Ms. */
const LEAST_MS = 100;

/** The wait until the next look. @param nextDueMs when the store says that something is due; undefined: it does not know. */
export const untilNextLook = (nextDueMs: number = LOOK_MS): number =>
  Math.max(LEAST_MS, Math.min(nextDueMs, LOOK_MS));

/** Calls of one look, which run concurrently. */
const MOST = 10;

export function repeaterOf({ due, make, tell, sleep, deadlineMs }: RepeaterOptions): Repeater {
  const deadline = { ms: deadlineMs, reason: 'The call took too long.', sleep };
  const repeat = async (operation: Operation, stopping: AbortSignal): Promise<void> => {
    try {
      // A call that takes too long is no longer waited for: the others go on.
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
