import type { Logger } from '../shared/alarms.ts';
import type {
  DeliveryReportEvent,
  Event,
  NotificationEvent,
  NotificationFamily,
  OtherEvent,
  ResultSchemas,
  TaskEvent,
  TaskStatus,
} from './event.ts';
import type { WebhookChallenge } from './challenge.ts';

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

/** What it returns is awaited and dropped; what it throws is logged, and the event is run again. */
export type Handler<E, Tx = unknown> = (event: E, ctx: HandlerContext<Tx>) => unknown;

type StatusHandlers<S extends ResultSchemas, Tx> = {
  readonly [K in TaskStatus]?: Handler<TaskEvent<S> & { readonly status: K }, Tx>;
};

/** Written as a method, so that the handler of one family fits among those of any name. */
type AnyNotificationHandler<Tx> = { handle(event: OtherEvent, ctx: HandlerContext<Tx>): unknown }['handle'];

type FeedHandler<Tx> = Handler<NotificationEvent<'wholesale_feed'>, Tx>;

interface HandlersByName<Tx> {
  readonly [family: `product.${string}` | `signal.${string}` | `wholesale_feed.${string}`]: FeedHandler<Tx>;
  readonly [family: string]: AnyNotificationHandler<Tx>;
}

/**
 * By what events call themselves (`event.family`), exactly; own members only. `wholesale_feed` takes what of that feed
 * (`product.*`, `signal.*`, `wholesale_feed.*`) has no handler of its exact name. A known family's handler gets
 * `event.notification` typed; what has no such payload, with the warning `invalid_notification`, goes to `other`.
 */
export type NotificationHandlers<Tx = unknown> = HandlersByName<Tx> & {
  readonly [F in NotificationFamily]?: Handler<NotificationEvent<F>, Tx>;
};

/** By task status, for reports, and `other` for whatever has no handler of its own, so that nothing is dropped. */
export interface Handlers<S extends ResultSchemas = ResultSchemas, Tx = unknown> extends StatusHandlers<
  S,
  Tx
> {
  readonly deliveryReport?: Handler<DeliveryReportEvent, Tx>;
  /** By family, e.g. `{ impairment: async (event) => … }`. */
  readonly notifications?: NotificationHandlers<Tx>;
  readonly other: Handler<Event<S>, Tx>;
}

/** What `onChallenge` gets beside the challenge. */
export interface ChallengeContext {
  /** Agent URL of the verified sender. */
  readonly sender: string;
  /** Aborts after 5 s, when the answer comes too late. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Says whether a seller may activate its subscription. Anything but `true` is no. */
export type OnChallenge = (challenge: WebhookChallenge, ctx: ChallengeContext) => boolean | Promise<boolean>;
