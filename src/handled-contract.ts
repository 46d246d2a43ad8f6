import type { Event, TaskEvent } from './events/event.ts';

/** How an event's run ended, or the event without one: what `onHandled` gets. */
export interface Handled {
  /** Agent URL. */
  readonly sender: string;
  /** Idempotency key. */
  readonly key: string;
  /** As `ctx.deliveryId`. */
  readonly deliveryId: string;
  readonly taskId?: string;
  readonly operationId?: string;
  /** Absent where the stored body is gone (`stale`, found by a worker) or cannot be read any more. */
  readonly kind?: Event['kind'];
  readonly family?: string;
  /** Kind `task`. */
  readonly status?: TaskEvent['status'];
  /**
   * - `applied`: the handler returned, or its transaction committed, and the store knows.
   * - `failed`: it threw, ran over `maxRunMs` or was interrupted by `stop()`; the event runs again.
   * - `dead`: so, and no run is left; kept for you.
   * - `stale`: never run, for its task has a newer status.
   */
  readonly state: 'applied' | 'failed' | 'dead' | 'stale';
  /** As `ctx.attempt`. Of an event that ended without a run: runs so far. */
  readonly attempt: number;
  /**
   * From the event's arrival to the begin of this run, ms. Mode `inline`: from the arrival of the delivery that ran it, or
   * of the call of `redrive`; a worker's: from when the event was stored, by the store's clock.
   */
  readonly waitedMs: number;
  /** From the begin of the handler to its end, ms; without what the store needed afterwards. 0 where there was no run. */
  readonly durationMs: number;
  /** What it threw, or why it is over: the text that is `lastError` of `receiver.inbox.inspect`. */
  readonly error?: string;
}

/**
 * Told of each run once, after the store has taken its end, in both modes; of a run past its deadline when that ends. Also of
 * an event that comes to its end without a run. Not told: where the process died, where the store did not take the end, and
 * where another process took the event over (`lease_lost`): so at most once a run. What it throws, promises or takes its
 * time for changes no answer.
 */
export type OnHandled = (handled: Handled) => void;
