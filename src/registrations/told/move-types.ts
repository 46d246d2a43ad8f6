// Public types of moves (changes of the webhook URLs that sellers use): the request, the plan, its steps and their
// states.
import type { JsonObject } from '../answer-json.ts';
import type { RouteScheme } from '../seller.ts';

/**
 * The request of `registrations.plan`: the new base URL, scheme or credentials of webhooks, and the sellers to move.
 */
export interface MoveRequest {
  /**
   * The new base URL: one of the option `baseUrl` of `createRegistrations`. Default: the first one. With `renew`, the
   * default is that each webhook keeps its own.
   */
  readonly baseUrl?: string | undefined;
  /** The authentication scheme that sellers should use afterwards. Default: each webhook keeps its scheme. */
  readonly scheme?: RouteScheme | undefined;
  /**
   * If true, the plan has only media buys and subscriptions with old HMAC or bearer credentials: older than
   * `renewAfterMs`, or replaced by newer ones.
   */
  readonly renew?: boolean | undefined;
  /** The agent URLs of the sellers. Default: all. */
  readonly sellers?: readonly string[] | undefined;
  /** The largest number of steps on the page, 1 to 1000. Default: 1000. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
}

/**
 * The state of a step of a plan. `planned`: not begun. `waiting`: stored by `apply`, but not sent yet. `under_way`:
 * sent, and not ended. `done`: the seller has the new URL. `refused`: the seller refused the change and keeps the
 * former URL; `apply` tries again. `unknown`: the step cannot be sent, because facts are missing here, or because the
 * subscription is lost or was refused.
 */
export type MoveState = 'planned' | 'waiting' | 'under_way' | 'done' | 'refused' | 'unknown';

/** A URL that a seller was given, or is to be given, without its secret last segment. */
export interface MoveUrl {
  /**
   * The kind of webhooks at the URL. `reports`: reports of a media buy. `push`: status and impairments of a media buy.
   * `subscription`: events of a subscription.
   */
  readonly channel: 'reports' | 'push' | 'subscription';
  readonly baseUrl: string;
  readonly scheme: RouteScheme;
}

/** One step of a plan: a media buy or a subscription whose seller is to be given another URL. */
export interface MoveStep {
  readonly agentUrl: string;
  /** The media buy that is moved. Absent: the step moves a subscription. */
  readonly mediaBuyId?: string;
  /** The subscription that is moved, by your `ref` and account object. Absent: the step moves a media buy. */
  readonly subscription?: { readonly ref: string; readonly account?: JsonObject };
  readonly from: readonly MoveUrl[];
  /** The URLs after the move. Empty if the state is `unknown`, or if nothing has to be moved. */
  readonly to: readonly MoveUrl[];
  /** The step as a sentence, for a terminal or a log. */
  readonly text: string;
  readonly state: MoveState;
  /** The reason for `state`. If the seller refused, the seller's own reason. */
  readonly reason?: string;
}

/**
 * A page of a plan. `registrations.plan` returns it, and `registrations.apply` carries it out. You may store it as JSON
 * in between.
 */
export interface MovePlan {
  /**
   * The destination. `baseUrl` is the requested one, or the first base URL at the time of the plan. With `renew` it is
   * absent unless you requested it.
   */
  readonly to: Pick<MoveRequest, 'baseUrl' | 'scheme' | 'renew'>;
  readonly steps: readonly MoveStep[];
  /** The value to pass as `after` for the next page. Absent on the last page. */
  readonly next?: string;
}

/** Options of `registrations.apply`: the number of steps to do, counted from the first one. */
export interface ApplyOptions {
  /** The number of steps to apply. Default: all steps of the plan. */
  readonly first?: number | undefined;
}

/** The part of `Registrations` that moves the webhooks of sellers to another URL, or to another scheme. */
export interface RegistrationMoves {
  /**
   * Lists the steps that would move the webhooks of sellers to another URL: one for each running media buy, and one for
   * each subscription. No seller is asked, and nothing is written. Webhooks that are at the target already have no
   * step. So if a plan has no steps and no `next`, everything has moved. Media buys and subscriptions are read page by
   * page; a page may have no step but a `next`.
   * @throws RegistrationError
   */
  readonly plan: (request?: MoveRequest) => Promise<MovePlan>;
  /**
   * Stores the steps of a plan, or its first `first` steps, and returns the plan with their states. The promise
   * resolves when the steps are durable. `start` carries them out, in any number of processes. Media buys are moved by
   * an `update_media_buy` that has only the webhook members. Subscriptions are moved by a change of their set, in which
   * the entries of other subscribers stay. You may call it again, with the same plan or another. A running step is not
   * begun twice, and refused steps are tried again.
   * @throws RegistrationError; ConfigError without `call`.
   */
  readonly apply: (plan: MovePlan, options?: ApplyOptions) => Promise<MovePlan>;
}
