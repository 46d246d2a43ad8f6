import { orAborted } from '../time-limits.ts';
import type { OperationName, OperationSeen } from './operation.ts';
import type { DueOperations, Operation } from './operations.ts';

/** What the owner is told of. */
export type RepeaterNews =
  /** Nobody can call it again: the seller may not know the request any more, or what was kept of it is lost. */
  | { readonly kind: 'orphaned'; readonly operation: OperationSeen }
  /** It was not called, or not answered: it comes again. Or the seller has refused it (`SellerError`). */
  | { readonly kind: 'failed'; readonly operation: OperationName; readonly error: unknown }
  /** The store could not be asked. */
  | { readonly kind: 'store'; readonly error: unknown };

export interface RepeaterOptions {
  readonly due: (max: number) => Promise<DueOperations>;
  /** Calls it, and settles it. */
  readonly make: (operation: Operation, signal: AbortSignal) => Promise<unknown>;
  readonly tell: (news: RepeaterNews) => void;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A call is told to stop after so long: before another process makes it too. Ms. */
  readonly deadlineMs: number;
}

/** Repeats calls whose caller has not settled them, in any number of processes: each is given to one at a time. */
export interface Repeater {
  /** Idempotent until `stop`. */
  readonly start: () => void;
  /** Nothing new from now on; resolves when what runs has ended. */
  readonly stop: () => Promise<void>;
}

/** The longest wait between two looks: an operation of another process that died is found so late. Ms. */
export const LOOK_MS = 10_000;

/** Also where something is said to be due at once: a store that is wrong about it must not be asked without end. Ms. */
const LEAST_MS = 100;

/** Calls that one look brings: they run at once. */
const MOST = 10;

export function repeaterOf({ due, make, tell, sleep, deadlineMs }: RepeaterOptions): Repeater {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  const repeat = async (operation: Operation): Promise<void> => {
    const ended = new AbortController();
    const given = new AbortController();
    const end = (): void => given.abort(stopping.signal.reason);
    stopping.signal.addEventListener('abort', end);
    const expire = async (): Promise<void> => {
      await sleep(deadlineMs, ended.signal);
      if (!ended.signal.aborted) given.abort(new DOMException('The call took too long.', 'TimeoutError'));
    };
    void expire();
    try {
      // One that does not heed its signal is left behind: the others go on.
      await orAborted(make(operation, given.signal), given.signal);
    } catch (error) {
      const { agentUrl, operationId } = operation;
      tell({ kind: 'failed', operation: { agentUrl, operationId }, error });
    } finally {
      stopping.signal.removeEventListener('abort', end);
      ended.abort();
    }
  };
  const look = async (): Promise<number> => {
    try {
      const { operations, orphaned, failed, nextDueMs = LOOK_MS } = await due(MOST);
      for (const operation of orphaned) tell({ kind: 'orphaned', operation });
      for (const { error, ...operation } of failed) tell({ kind: 'failed', operation, error });
      await Promise.all(operations.map(repeat));
      return Math.max(LEAST_MS, Math.min(nextDueMs, LOOK_MS));
    } catch (error) {
      tell({ kind: 'store', error });
      return LOOK_MS;
    }
  };
  return {
    start: () => {
      running ??= (async () => {
        while (!stopping.signal.aborted) await sleep(await look(), stopping.signal);
      })();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
