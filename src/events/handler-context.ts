import type { Logger } from '../shared/alarms.ts';

/** What a handler gets beside the event. */
export interface HandlerContext<Tx = unknown> {
  /** UUID version 8 of (sender, idempotency key), the same on every run: a job id, an upsert key. */
  readonly deliveryId: string;
  /**
   * 1 on the first run, and more on every later one, whatever ended the one before: a failure, a crash, a redrive. Over 1
   * an earlier run may have begun, so look before you repeat what must not happen twice.
   */
  readonly run: number;
  /** Runs that are charged towards DEAD (`retry.attempts`), this one included. A crash gives its own back: not a count of runs. */
  readonly chargedAttempts: number;
  /** Aborts at the handler's deadline and when the lease is lost: nothing done after it counts. */
  readonly signal: AbortSignal;
  /** Agent URL of the authenticated sender. */
  readonly sender: string;
  /** As `event.url`. */
  readonly url?: string;
  readonly log: Logger;
  /**
   * Commits `fn`'s writes and the event's completion together or not at all, once per delivery. The event is done at
   * this commit, and its task free for the next one's handler: make it the last thing. One at a time. SQLite: `fn` is
   * synchronous and gets the connection. Postgres: a `fn` that has not ended when the run is over (the lease is gone,
   * `maxRunMs` has passed, the receiver has stopped) is given up, and its connection closed; `tx` serves `fn` alone, and
   * fails with the code `transaction_over` after it.
   * @throws ConfigError (rejects) on a store without transactions, while another one of this event is under way, after
   *   one that committed, and when the handler has settled.
   */
  transaction<T>(fn: (tx: Tx) => T | Promise<T>): Promise<T>;
}
