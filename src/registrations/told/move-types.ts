// Types of moves as users see them: the request, the plan, its steps and their states.
import type { JsonObject } from '../answer-json.ts';
import type { RouteScheme } from '../seller.ts';

/** The destination of a move that `registrations.plan` lists: another base URL, another scheme, or new credentials. */
export interface MoveRequest {
  /** One of the base URLs of these registrations. Default: the first one; with `renew` each keeps its own. */
  readonly baseUrl?: string | undefined;
  /** The scheme by which sellers are to authenticate from then on. Default: each keeps its own. */
  readonly scheme?: RouteScheme | undefined;
  /** True: only what has HMAC or bearer credentials that are older than `renewAfterMs`, or were renewed since. */
  readonly renew?: boolean | undefined;
  /** The agent URLs of the sellers. Default: all. */
  readonly sellers?: readonly string[] | undefined;
  /** The largest number of steps on the page, 1 to 1000. Default: 1000. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
}

/**
 * The state of a step of a move. `planned`: nothing was begun. `waiting`: `apply` has stored it, and it is not sent yet.
 * `under_way`: it was sent, and has not ended. `done`: the seller has it. `refused`: the seller refused it, and keeps what
 * it had; `apply` tries again. `unknown`: it cannot be sent, because something that it needs is not known here, or the
 * subscription is lost or was refused.
 */
export type MoveState = 'planned' | 'waiting' | 'under_way' | 'done' | 'refused' | 'unknown';

/** A URL that a seller was told, or is to be told, without its secret last segment. */
export interface MoveUrl {
  /** `reports` of a media buy; `push`: its status and impairments; events of a `subscription`. */
  readonly channel: 'reports' | 'push' | 'subscription';
  readonly baseUrl: string;
  readonly scheme: RouteScheme;
}

/** One step of a plan: a media buy, or a subscription, whose seller is to be told another URL. */
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
  /** The destination. `baseUrl` is the one that was asked for or, except with `renew`, the first one at that time. */
  readonly to: Pick<MoveRequest, 'baseUrl' | 'scheme' | 'renew'>;
  readonly steps: readonly MoveStep[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** Options of `registrations.apply`: the number of steps, from the first on. */
export interface ApplyOptions {
  /** Default: all steps of the plan. */
  readonly first?: number | undefined;
}

/** The part of `Registrations` that moves what sellers were told: to another URL, or another scheme. */
export interface RegistrationMoves {
  /**
   * Lists the steps that would take the webhooks of sellers to another URL: one for each media buy that runs, and one
   * for each subscription. It asks no seller and writes nothing. What is there already is no step, so an empty last
   * page says that everything has moved. Media buys and subscriptions are read page by page; a page may have no
   * step and a `next`.
   * @throws RegistrationError
   */
  readonly plan: (request?: MoveRequest) => Promise<MovePlan>;
  /**
   * Stores the steps of a plan, or its first `first`, and returns the plan with their states. It resolves when they are
   * durable. `start` does them, in any number of processes. Media buys are moved by `update_media_buy` with the webhook
   * members alone. Subscriptions are moved by a change of their set, in which the entries of others stay.
   * Called again, with the same plan or another, it goes on. It begins no running step twice, and tries refused ones
   * again.
   * @throws RegistrationError; ConfigError without `call`.
   */
  readonly apply: (plan: MovePlan, options?: ApplyOptions) => Promise<MovePlan>;
}
