// Public types of the URLs that sellers were given: `registrations.state`, its check, and `retire`.
import type { RouteScheme } from '../seller.ts';

/** Selects the URLs that `registrations.state` returns. Default: those of all sellers. */
export interface StateQuery {
  /** The agent URL of the seller. Default: all sellers. */
  readonly agentUrl?: string | undefined;
  /** The largest number of URLs on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
  /**
   * If true, the sellers of the page are asked to which URLs they send. The answers are compared with the URLs that the
   * sellers were given. The results are in `StatePage.check` and `UrlState.drift`. Needs the option `call`. Default:
   * false; no seller is asked.
   */
  readonly check?: boolean | undefined;
  /** Aborts the requests of `check`; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A media buy that is being moved from one URL to another, or whose seller refused the move. */
export interface MovingMediaBuy {
  readonly mediaBuyId: string;
  /**
   * `waiting`: the media buy's update has not begun. `under_way`: the update has not ended. `refused`: the seller
   * refused the update.
   */
  readonly state: 'waiting' | 'under_way' | 'refused';
  /** The seller's reason for the refusal, or the reason for the wait. */
  readonly reason?: string;
}

/**
 * A URL of yours that a seller was given, and the calls, media buys and subscriptions for which the seller uses the
 * URL. Times are Unix ms on the store's clock.
 */
export interface UrlState {
  readonly agentUrl: string;
  /** The base URL (option `baseUrl`) below which the URL is. */
  readonly base: string;
  /**
   * The id of the URL's secret last segment; the segment itself is not stored. For an adopted URL: the part of the URL
   * after `base`.
   */
  readonly route: string;
  /** The authentication that the seller was asked to use at this URL. */
  readonly scheme: RouteScheme;
  /** The time at which the URL was made for the seller, or adopted. */
  readonly givenAt: number;
  /** The time at which the URL was retired. A retired URL is still listed as long as something uses it. */
  readonly retiredAt?: number;
  /** The time of the last authentic delivery at the URL, to the minute. Absent: there was none. */
  readonly heardAt?: number;
  /**
   * The time at which the URL's credentials were made. Absent: the URL has none, or an earlier version of this package
   * made them.
   */
  readonly credentialsMadeAt?: number;
  /** True: the URL's credentials are older than `renewAfterMs`, and are not being renewed. */
  readonly renewalDue?: true;
  /**
   * The numbers of calls, media buys and subscriptions that use the URL. A media buy uses a former URL until its first
   * event arrives at the new one.
   */
  readonly counts: {
    /** The number of calls that have not ended. */
    readonly operations: number;
    readonly mediaBuys: number;
    readonly subscriptions: number;
  };
  /** The ids of the first 100 operations (calls) that use the URL. */
  readonly operations: readonly string[];
  /** The ids of the first 100 media buys that use the URL. */
  readonly mediaBuys: readonly string[];
  /** The `ref` of the first 100 subscriptions that use the URL. */
  readonly subscriptions: readonly string[];
  /** The first 100 media buys that use the URL and are being moved to another. */
  readonly moving: readonly MovingMediaBuy[];
  /**
   * The time from which the URL is no longer needed, if no more deliveries come. Absent: something still uses the URL.
   */
  readonly quietAt?: number;
  /** The difference that `check` found. Absent: there is none, or `check` was not requested. */
  readonly drift?: UrlDrift;
}

/**
 * The media buys and subscriptions whose seller shows another URL than the one it was given.
 * `registrations.state({ check: true })` finds them.
 */
export interface UrlDrift {
  readonly counts: { readonly mediaBuys: number; readonly subscriptions: number };
  /** The ids of the first 100 media buys with another URL. */
  readonly mediaBuys: readonly string[];
  /** The `ref` of the first 100 subscriptions with another URL or other differences. */
  readonly subscriptions: readonly string[];
  /**
   * The first 10 distinct differences. They never contain a whole URL. For a media buy: the host to which the seller
   * sends, with the wrong path if the host is right. For a subscription: the difference in words.
   */
  readonly shown: readonly string[];
}

/** A request of `registrations.state({ check: true })` that a seller refused, did not answer, or answered wrongly. */
export interface UrlCheckError {
  readonly agentUrl: string;
  /** The subject of the request: media buys (`get_media_buys`) or subscriptions (`list_accounts`). */
  readonly of: 'mediaBuys' | 'subscriptions';
  /**
   * The seller's code, or the code of an error of this package, e.g. `answer_invalid`. `seller_busy`: the seller asks
   * for a pause, or too many requests to the seller are running. `unanswered`: there was no answer.
   */
  readonly code: string;
  readonly message: string;
}

/** The result of `registrations.state({ check: true })`, beside `UrlState.drift`. */
export interface UrlCheck {
  /**
   * The numbers of media buys and subscriptions for which a seller showed to which URLs it sends. Those without such an
   * answer are not counted.
   */
  readonly compared: { readonly mediaBuys: number; readonly subscriptions: number };
  /** The requests that failed: each code once for each seller and kind of request. */
  readonly errors: readonly UrlCheckError[];
}

/**
 * Names one of your URLs, as `registrations.state` lists it: pass a `UrlState` of that list, or these three members.
 */
export type UrlName = Pick<UrlState, 'agentUrl' | 'base' | 'route'>;

/** Options of `registrations.retire`, which retires a URL. */
export interface RetireOptions {
  /** If true, the URL is retired even if something uses it, or if it was used lately. */
  readonly force?: boolean | undefined;
}

/** One page of URLs. Pass `next` as `after` to get the next page; it is absent on the last one. */
export interface StatePage {
  readonly urls: readonly UrlState[];
  /** The time at which the page was read, Unix ms on the store's clock. */
  readonly asOf: number;
  readonly next?: string;
  /** The result of the check. Present if `check` is true. */
  readonly check?: UrlCheck;
}

/** The part of `Registrations` about the URLs that sellers were given. */
export interface RegistrationUrls {
  /**
   * Lists your URLs that sellers were given, in pages, with the calls, media buys and subscriptions that use each URL.
   * No seller is asked, unless `check` is true. With `check`, a difference also raises the alarm `registration_drift`,
   * once a day for each URL.
   * @throws RegistrationError (rejects)
   */
  readonly state: (query?: StateQuery) => Promise<StatePage>;
  /**
   * Retires a URL that `state` lists: no seller is given it any more. Signed deliveries are still accepted there, with
   * the alarm `retired_url_used` once a day. HMAC and bearer credentials are deleted once their URLs are retired below
   * every base URL. A delivery with deleted credentials is answered 503.
   * @throws RegistrationError (rejects) `url_in_use` if something uses the URL, or if it was used lately: see
   *   `UrlState.quietAt`.
   */
  readonly retire: (url: UrlName, how?: RetireOptions) => Promise<void>;
}
