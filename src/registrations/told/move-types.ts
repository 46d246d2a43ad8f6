// Types of moves as users see them: the request, the plan, its steps and their states.
import type { JsonObject } from '../answer-json.ts';
import type { RouteScheme } from '../seller.ts';

/** The destination of a move that `registrations.plan` lists: another base URL, another scheme, or new credentials. */
export interface MoveRequest {
  /** One of the base URLs of these registrations. Default: the first one; with `renew` each keeps its own. */
  readonly baseUrl?: string | undefined;
  /** The scheme by which sellers are to authenticate from then on. Default: each keeps its own. */
  readonly scheme?: RouteScheme | undefined;
  /**
   * If true, the plan has only what uses HMAC or bearer credentials that are older than `renewAfterMs`, or were renewed
   * since.
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
 * The state of a step of a move. `planned`: nothing was begun. `waiting`: `apply` has stored it, and it is not sent
 * yet. `under_way`: it was sent, and has not ended. `done`: the seller has the new URL. `refused`: the seller refused
 * it, and keeps the former URL; `apply` tries again. `unknown`: it cannot be sent, because something that it needs is
 * not known here, or the subscription is lost or was refused.
 */
export type MoveState = 'planned' | 'waiting' | 'under_way' | 'done' | 'refused' | 'unknown';

/** A URL that a seller was given, or is to be given, without its secret last segment. */
export interface MoveUrl {
  /**
   * The webhooks at the URL. `reports`: those of a media buy. `push`: its status and impairments. `subscription`:
   * events of a subscription.
   */
  readonly channel: 'reports' | 'push' | 'subscription';
  readonly baseUrl: string;
  readonly scheme: RouteScheme;
}

/** One step of a plan: a media buy or a subscription whose seller is to be given another URL. */
export interface MoveStep {
  readonly agentUrl: string;
  /** Absent: a subscription. */
  readonly mediaBuyId?: string;
  /** The subscription, by your `ref` and account object. Absent: a media buy. */
  readonly subscription?: { readonly ref: string; readonly account?: JsonObject };
  readonly from: readonly MoveUrl[];
  /** Empty if the state is `unknown`. */
  readonly to: readonly MoveUrl[];
  /** The step as a sentence, for a terminal or a log. */
  readonly text: string;
  readonly state: MoveState;
  /** The reason for the state: the seller's own, if it refused. */
  readonly reason?: string;
}

/** A page of the steps that `registrations.plan` returns, and `apply` takes. It may be stored as JSON in between. */
export interface MovePlan {
  /**
   * The destination. `baseUrl` is the requested one, or the first one at the time of the plan. With `renew` it is
   * absent unless it was requested.
   */
  readonly to: Pick<MoveRequest, 'baseUrl' | 'scheme' | 'renew'>;
  readonly steps: readonly MoveStep[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** Options of `registrations.apply`: the number of steps to do, counted from the first one. */
export interface ApplyOptions {
  /** The number of steps. Default: all steps of the plan. */
  readonly first?: number | undefined;
}

/** The part of `Registrations` that moves the webhooks of sellers to another URL, or to another scheme. */
export interface RegistrationMoves {
  /**
   * Lists the steps that would move the webhooks of sellers to another URL: one for each running media buy, and one for
   * each subscription. It asks no seller and writes nothing. Whatever is at the target already has no step. So if a
   * plan has no steps and no `next`, everything has moved. Media buys and subscriptions are read page by page; a page
   * may have no step but a `next`.
   * @throws RegistrationError
   */
  readonly plan: (request?: MoveRequest) => Promise<MovePlan>;
  /**
   * Stores the steps of a plan, or its first `first` steps, and returns the plan with their states. The promise
   * resolves when they are durable. `start` does them, in any number of processes. Media buys are moved by an
   * `update_media_buy` that has only the webhook members. Subscriptions are moved by a change of their set, in which
   * the entries of others stay. You may call it again, with the same plan or another. It begins no running step twice,
   * and tries refused steps again.
   * @throws RegistrationError; ConfigError without `call`.
   */
  readonly apply: (plan: MovePlan, options?: ApplyOptions) => Promise<MovePlan>;
}
