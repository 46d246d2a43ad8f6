// Public types of webhook subscriptions: the request, the subscription, its state and a page of subscriptions.
import type { JsonObject } from '../answer-json.ts';
import type { RouteScheme, Seller } from '../seller.ts';
import type { SubscriptionState } from './set-row.ts';

/** Names a subscription: the seller, the account, and your `ref`. */
export interface SubscriptionName {
  /** The seller's agent URL, as in `Seller`. */
  readonly agentUrl: string;
  /** The account object, as in `SubscriptionRequest`. Absent: the subscription is for the whole agent. */
  readonly account?: JsonObject | undefined;
  readonly ref: string;
}

/**
 * The part of a request to `subscribe` and `unsubscribe` that says how the set may be changed. A set has all
 * subscriptions of an account or agent, including those of other subscribers.
 */
export interface SetChange {
  /**
   * True: you declare that no other subscriber has subscriptions for the whole agent. Required for subscriptions of the
   * whole agent, because each change replaces them all, and sellers do not show them.
   */
  readonly exclusive?: boolean | undefined;
  /**
   * The credentials of other subscribers' entries, by their `subscriber_id`. They are sent back to the seller, and are
   * not stored. Required for each such entry with credentials, because a seller never shows them.
   */
  readonly credentials?: Readonly<Record<string, string>> | undefined;
  /** Aborts the wait and the calls. The request stays stored, and `start` finishes it. */
  readonly signal?: AbortSignal | undefined;
}

/** The request of `registrations.subscribe`: the seller, the account or the whole agent, and the event types. */
export interface SubscriptionRequest extends Seller, SetChange {
  /**
   * The account object that the seller knows, sent unchanged: `account_id`, or its other members. Absent: the whole
   * agent.
   */
  readonly account?: JsonObject | undefined;
  /** The notification types, e.g. `creative.status_changed`. */
  readonly eventTypes: readonly string[];
  /**
   * Your name for the subscription, unique within the account or the agent, at most 1 KiB. It is never sent to the
   * seller.
   */
  readonly ref: string;
  /** The authentication of the webhooks, if the seller cannot sign: `HMAC-SHA256` or `Bearer`. Default: `signature`. */
  readonly scheme?: RouteScheme | undefined;
}

/** The request of `registrations.unsubscribe`: the subscription to remove. */
export interface SubscriptionRemoval extends SubscriptionName, SetChange {}

/** A subscription as `subscribe` and `subscriptions.list` return it. */
export interface SubscriptionSeen extends SubscriptionName {
  readonly account?: JsonObject;
  /** The seller's id of the account. Absent: it was not read yet, or the subscription is for the whole agent. */
  readonly accountId?: string;
  /** The `subscriber_id` of the subscription at the seller. The subscription's events contain it. */
  readonly subscriberId: string;
  readonly eventTypes: readonly string[];
  readonly scheme: RouteScheme;
  readonly state: SubscriptionState;
  /** The reason for `state`, if the subscription is refused or lost, or could not be sent yet. */
  readonly reason?: string;
  /** The time at which the subscription got its present `state`. Unix ms on the store's clock. */
  readonly since: number;
}

/** Selects the subscriptions that `registrations.subscriptions.list` returns. Default: all. */
export interface SubscriptionQuery {
  /** The agent URL of the seller. Default: all sellers. */
  readonly agentUrl?: string | undefined;
  readonly state?: SubscriptionState | undefined;
  /** The most accounts and agents on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
}

/** One page of subscriptions. Pass `next` as `after` to get the next page; it is absent on the last one. */
export interface SubscriptionPage {
  readonly subscriptions: readonly SubscriptionSeen[];
  readonly next?: string;
}
