// Types of the URLs that sellers were given, as users see them: `registrations.state`, its check, and `retire`.
import type { RouteScheme } from '../seller.ts';

/** Selects the URLs that `registrations.state` returns. Default: those of all sellers. */
export interface StateQuery {
  /** The agent URL of the seller. Default: all sellers. */
  readonly agentUrl?: string | undefined;
  /** The largest number of URLs on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
  /**
   * If true, the sellers of the page are asked where they send. Their answers are compared with the URLs that they were
   * given: `StatePage.check` and `UrlState.drift`. It needs the option `call`. Default: false, and no seller is asked.
   */
  readonly check?: boolean | undefined;
  /** Ends the questions of `check`; the promise rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A media buy that is on its way from one URL to another, or was refused there. */
export interface MovingMediaBuy {
  readonly mediaBuyId: string;
  /** `waiting`: its update is not begun. `under_way`: it is not done. `refused`: the seller refused it. */
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
  /** The name of the last segment; of an adopted URL, what follows the base. The URL itself is kept nowhere. */
  readonly route: string;
  /** The authentication that the seller was asked for there. */
  readonly scheme: RouteScheme;
  /** The time at which it was made for the seller, or adopted. */
  readonly givenAt: number;
  /** The time at which it was retired. It is listed for as long as somebody is on it. */
  readonly retiredAt?: number;
  /** The time of the last authentic delivery by it, to the minute. Absent: there was none. */
  readonly heardAt?: number;
  /** The time at which its credentials were made. Absent: it has none, or an earlier version made them. */
  readonly credentialsMadeAt?: number;
  /** True: its credentials are older than `renewAfterMs`, and are not being renewed. */
  readonly renewalDue?: true;
  /** The numbers of those that are on it. A media buy stays on a former URL until an event of it came by the new one. */
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
  /** The `ref` of the first 100. */
  readonly subscriptions: readonly string[];
  /** Media buys on it that are being moved, the first 100. */
  readonly moving: readonly MovingMediaBuy[];
  /** The time from which nobody needs it, if nothing more comes by it. Absent: somebody is on it. */
  readonly quietAt?: number;
  /** The difference that `check` found. Absent: none was found, or it was not asked for. */
  readonly drift?: UrlDrift;
}

/**
 * The media buys and subscriptions that were told a URL, and for which the seller shows another one: found by
 * `registrations.state({ check: true })`.
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

/** A question of `registrations.state({ check: true })` that a seller did not answer as it should. */
export interface UrlCheckError {
  readonly agentUrl: string;
  /** The question: about media buys (`get_media_buys`) or about subscriptions (`list_accounts`). */
  readonly of: 'mediaBuys' | 'subscriptions';
  /**
   * The seller's code, or the code of an error of this package, e.g. `answer_invalid`. `seller_busy`: it asks for a
   * pause, or has no free place. `unanswered`: there was no answer.
   */
  readonly code: string;
  readonly message: string;
}

/** The result of `registrations.state({ check: true })`, beside `UrlState.drift`. */
export interface UrlCheck {
  /**
   * The numbers of those for which a seller showed where it sends. A media buy for which it showed nothing is not
   * among them.
   */
  readonly compared: { readonly mediaBuys: number; readonly subscriptions: number };
  /** The questions that failed: each code once for each seller and kind of question. */
  readonly errors: readonly UrlCheckError[];
}

/** Names a URL of yours, as `registrations.state` lists it: pass such a `UrlState`, or its three members. */
export type UrlName = Pick<UrlState, 'agentUrl' | 'base' | 'route'>;

/** Options of `registrations.retire`, which retires a URL: whether it may be in use. */
export interface RetireOptions {
  /** If true, the URL is retired though somebody is on it, or it was used lately. */
  readonly force?: boolean | undefined;
}

/** One page of URLs. Pass `next` as `after` to get the next page; it is absent on the last one. */
export interface StatePage {
  readonly urls: readonly UrlState[];
  /** The time at which the page was read, Unix ms on the store's clock. */
  readonly asOf: number;
  readonly next?: string;
  /** Present if `check` is true. */
  readonly check?: UrlCheck;
}

/** The URLs that sellers were given: a part of `Registrations`, made by `createRegistrations`. */
export interface RegistrationUrls {
  /**
   * Lists the URLs of yours that sellers were given, in pages, with the calls, media buys and subscriptions that are on
   * each. It asks no seller, unless `check` is true. Then a difference is also the alarm `registration_drift`, once a
   * day for each URL.
   * @throws RegistrationError (rejects)
   */
  readonly state: (query?: StateQuery) => Promise<StatePage>;
  /**
   * Retires a URL that `state` lists: no seller is given it any more. Signed deliveries are still accepted there, with
   * the alarm `retired_url_used` once a day. HMAC and bearer credentials are deleted once they are given below no base,
   * and a delivery with them is answered 503.
   * @throws RegistrationError (rejects) `url_in_use` if somebody is on it, or it was used lately: see
   * `UrlState.quietAt`.
   */
  readonly retire: (url: UrlName, how?: RetireOptions) => Promise<void>;
}
