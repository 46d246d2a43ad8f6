// The types of the handlers that the receiver's owner writes, and of `onChallenge`.
// They are options of `createReceiver`; `dispatch` calls handlers, and the stage for proofs of control calls
// `onChallenge`.

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
import type { HandlerContext } from './handler-context.ts';

/**
 * Your function that handles an event. Its result is awaited and ignored. If it throws, the error is logged and the
 * event runs again later.
 */
export type Handler<E, Tx = unknown> = (event: E, ctx: HandlerContext<Tx>) => unknown;

type StatusHandlers<S extends ResultSchemas, Tx> = {
  readonly [K in TaskStatus]?: Handler<TaskEvent<S> & { readonly status: K }, Tx>;
};

/**
 * Declared as a method, because TypeScript compares the parameters of methods loosely. A handler of one family is then
 * assignable where handlers of any family are expected.
 */
type AnyNotificationHandler<Tx> = { handle(event: OtherEvent, ctx: HandlerContext<Tx>): unknown }['handle'];

type FeedHandler<Tx> = Handler<NotificationEvent<'wholesale_feed'>, Tx>;

interface HandlersByName<Tx> {
  readonly [family: `product.${string}` | `signal.${string}` | `wholesale_feed.${string}`]: FeedHandler<Tx>;
  readonly [family: string]: AnyNotificationHandler<Tx>;
}

/**
 * Your handlers of notifications (`handlers.notifications`), by the exact family name (`event.family`); inherited
 * members are ignored. `wholesale_feed` takes events of that feed (`product.*`, `signal.*`, `wholesale_feed.*`)
 * without a handler of their exact name.
 *
 * The handler of a known family receives a typed `event.notification`. An event whose payload does not fit has the
 * warning `invalid_notification` and goes to `other`.
 */
export type NotificationHandlers<Tx = unknown> = HandlersByName<Tx> & {
  readonly [F in NotificationFamily]?: Handler<NotificationEvent<F>, Tx>;
};

/**
 * Your functions that handle events: the option `handlers` of `createReceiver`. There is one for each task status,
 * one for delivery reports, those for notifications, and `other`. Every event without a handler of its own goes to
 * `other`, so that none is dropped.
 */
export interface Handlers<S extends ResultSchemas = ResultSchemas, Tx = unknown> extends StatusHandlers<
  S,
  Tx
> {
  readonly deliveryReport?: Handler<DeliveryReportEvent, Tx>;
  /** The handlers of notifications by family, e.g. `{ impairment: async (event) => … }`. */
  readonly notifications?: NotificationHandlers<Tx>;
  readonly other: Handler<Event<S>, Tx>;
}

/**
 * The second argument of `onChallenge`, which decides a seller's proof of control: the verified seller, a signal for
 * the deadline, and a logger.
 */
export interface ChallengeContext {
  /** The agent URL of the verified sender. */
  readonly sender: string;
  /** Aborts after 5 s, because the seller no longer waits for a later answer. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * The hook `onChallenge` of `createReceiver`. It decides if a seller that asks for a proof of control of your URL may
 * activate a subscription. It is not asked about subscriptions of `registrations`. Any value but `true` means no,
 * answered with 403; an error is answered with 503.
 */
export type OnChallenge = (challenge: WebhookChallenge, ctx: ChallengeContext) => boolean | Promise<boolean>;
