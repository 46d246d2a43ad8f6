// The type of a handler's second argument.
// Made by `dispatch` for every run.

import type { Logger } from '../shared/alarms.ts';

/**
 * The second argument of your handler. It has the event's id (`deliveryId`, the same on every run), the
 * number of this run, and the runs that count towards giving up.
 *
 * It also has a signal that aborts at the deadline, a logger, and `transaction`, which commits your writes
 * together with the event.
 */
export interface HandlerContext<Tx = unknown> {
  /** The UUID (version 8) of sender and idempotency key, the same on every run. Use it as a job id or an upsert key. */
  readonly deliveryId: string;
  /**
   * The number of the run: 1 for the first, more for every later one, after a failure, a crash or a redrive. If it is
   * above 1, an earlier run may have done a part of the work. Check before you repeat something that must not happen
   * twice.
   */
  readonly run: number;
  /**
   * The number of runs charged towards DEAD (`retry.attempts`), including this one. A crash's charge is taken back, so
   * this is not the number of all runs.
   */
  readonly chargedAttempts: number;
  /** Aborts at the handler's deadline and when the lease is lost. Work done after it does not count. */
  readonly signal: AbortSignal;
  /** The agent URL of the authenticated sender. */
  readonly sender: string;
  /** The same URL as `event.url`. */
  readonly url?: string;
  readonly log: Logger;
  /**
   * Commits the writes of `fn` and the event's completion together or not at all, once per delivery. The commit
   * completes the event and frees its task for the next handler, so make it the last step. Only one transaction runs at
   * a time.
   *
   * SQLite: `fn` is synchronous and receives the connection. Postgres: `fn` is abandoned and its connection closed if
   * it has not ended when the run is over. A run is over when the lease is lost, `maxRunMs` has passed, or the receiver
   * has stopped. `tx` is only for `fn`, and later calls on it fail with the code `transaction_over`.
   * @throws ConfigError (rejects) on a store without transactions, while another transaction of the event is open,
   * after a transaction has committed, and after the handler settled.
   */
  transaction<T>(fn: (tx: Tx) => T | Promise<T>): Promise<T>;
}
