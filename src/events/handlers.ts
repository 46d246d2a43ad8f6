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
