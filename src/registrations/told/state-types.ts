// Types of the URLs that sellers were given, as users see them: `registrations.state`, its check, and `retire`.
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
   * If true, the sellers of the page are asked where they send. Their answers are compared with the URLs that they were
   * given; the results are in `StatePage.check` and `UrlState.drift`. It needs the option `call`. Default: false; no
   * seller is asked.
   */
  readonly check?: boolean | undefined;
  /** Aborts the requests of `check`; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A media buy that is being moved from one URL to another, or whose seller refused the move. */
export interface MovingMediaBuy {
  readonly mediaBuyId: string;
  /**
   * `waiting`: its update has not begun. `under_way`: its update has not ended. `refused`: the seller refused the
   * update.
   */
  readonly state: 'waiting' | 'under_way' | 'refused';
  /** The seller's reason, or the reason for the wait. */
  readonly reason?: string;
}

/**
 * A URL of yours that a seller was given, and the calls, media buys and subscriptions for which the seller uses it. Times
 * are Unix ms on the store's clock.
 */
export interface UrlState {
  readonly agentUrl: string;
  /** The `baseUrl` below which the URL is. */
  readonly base: string;
  /**
   * The name of the URL's last segment. For an adopted URL, the part after the base URL. The last segment itself is not
   * stored.
   */
  readonly route: string;
  /** The authentication that the seller was asked to use at this URL. */
  readonly scheme: RouteScheme;
  /** The time at which it was made for the seller, or adopted. */
  readonly givenAt: number;
  /** The time at which it was retired. It is still listed as long as something uses it. */
  readonly retiredAt?: number;
  /** The time of the last authentic delivery at it, to the minute. Absent: there was none. */
  readonly heardAt?: number;
  /** The time at which its credentials were made. Absent: it has none, or an earlier version made them. */
  readonly credentialsMadeAt?: number;
  /** True: its credentials are older than `renewAfterMs`, and are not being renewed. */
  readonly renewalDue?: true;
  /**
   * The numbers of calls, media buys and subscriptions that use it. A media buy uses a former URL until an event of it
   * came by the new one.
   */
  readonly counts: {
    /** Calls that have not ended. */
    readonly operations: number;
    readonly mediaBuys: number;
    readonly subscriptions: number;
  };
  /** The first 100 operation ids. */
  readonly operations: readonly string[];
  /** The first 100 media buy ids. */
  readonly mediaBuys: readonly string[];
  /** The `ref` of the first 100 subscriptions. */
  readonly subscriptions: readonly string[];
  /** Media buys that use it and are being moved, the first 100. */
  readonly moving: readonly MovingMediaBuy[];
  /** The time from which it is no longer needed, if no more deliveries come. Absent: something still uses it. */
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
  /** The first 100 media buy ids. */
  readonly mediaBuys: readonly string[];
  /** The `ref` of the first 100. */
  readonly subscriptions: readonly string[];
  /**
   * The first 10 different findings. They never contain a whole URL. For a media buy a finding is the host to which the
   * seller sends, with the wrong path if the host is right. For a subscription it is the difference in words.
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
   * for a pause, or all its call slots are occupied. `unanswered`: there was no answer.
   */
  readonly code: string;
  readonly message: string;
}

/** The result of `registrations.state({ check: true })`, beside `UrlState.drift`. */
export interface UrlCheck {
  /**
   * The numbers of media buys and subscriptions for which a seller showed where it sends. Those for which it showed
   * nothing are not included.
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
   * Lists your URLs that sellers were given, in pages, with the calls, media buys and subscriptions that use each. It
   * asks no seller, unless `check` is true. With `check`, a difference also raises the alarm `registration_drift`, once
   * a day for each URL.
   * @throws RegistrationError (rejects)
   */
  readonly state: (query?: StateQuery) => Promise<StatePage>;
  /**
   * Retires a URL that `state` lists: no seller is given it any more. Signed deliveries are still accepted there, with
   * the alarm `retired_url_used` once a day. HMAC and bearer credentials are deleted once they are retired below every
   * base URL. A delivery with deleted credentials is answered 503.
   * @throws RegistrationError (rejects) `url_in_use` if something uses it, or if it was used lately: see
   *   `UrlState.quietAt`.
   */
  readonly retire: (url: UrlName, how?: RetireOptions) => Promise<void>;
}
