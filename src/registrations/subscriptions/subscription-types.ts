// Types of subscriptions as users see them: the request, the subscription, its state and a page of them.
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
   * True: no other subscriber has subscriptions of the whole agent. It is required for subscriptions of the whole
   * agent. The seller cannot be asked for them, and each change replaces them all.
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

/** A subscription that `registrations.subscribe` sets: the seller, the account or the whole agent, and event types. */
export interface SubscriptionRequest extends Seller, SetChange {
  /**
   * The account object that the seller knows, sent unchanged: `account_id`, or its other members. Absent: the whole
   * agent.
   */
  readonly account?: JsonObject | undefined;
  /** The notification types, e.g. `creative.status_changed`. */
  readonly eventTypes: readonly string[];
  /** Your name for it, unique within the account or the agent, at most 1 KiB. It is never sent to the seller. */
  readonly ref: string;
  /** The legacy authentication of the webhooks, if the seller cannot sign. */
  readonly scheme?: RouteScheme | undefined;
}

/** A subscription that `registrations.unsubscribe` removes. */
export interface SubscriptionRemoval extends SubscriptionName, SetChange {}

/** A subscription as it is stored. */
export interface SubscriptionSeen extends SubscriptionName {
  readonly account?: JsonObject;
  /** The seller's id of the account. Absent: it was not read yet, or the subscription is for the whole agent. */
  readonly accountId?: string;
  /** The `subscriber_id` of the seller's entry, which its events name. */
  readonly subscriberId: string;
  readonly eventTypes: readonly string[];
  readonly scheme: RouteScheme;
  readonly state: SubscriptionState;
  /** The reason for the state, if it is refused or lost, or could not be sent yet. */
  readonly reason?: string;
  /** The time since which it has been in this state, Unix ms on the store's clock. */
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
