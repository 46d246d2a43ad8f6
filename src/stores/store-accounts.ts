// The facts that events report for the accounts of media buys and subscriptions: report windows, and states of things,
// e.g. of impairments (owed.md §3, §6).
// Made by `src/stages`, kept by `rules/report-windows.ts` and `rules/states.ts`. Types only.

/** The period for which a report has data of one media buy. */
export interface WindowClaim {
  /** The id of the media buy's row of kind `stream`. */
  readonly id: string;
  readonly mediaBuyId: string;
  /** The start of the period, Unix ms, inclusive. */
  readonly start: number;
  /** The end of the period as the seller wrote it, Unix ms. */
  readonly end: number;
  /** The seller's name of the measurement window; empty if the report names none. */
  readonly stage: string;
  /** True if the report corrects or widens an earlier one. */
  readonly isRevision: boolean;
  /** Present if the report says that it has no data of the media buy yet (status `reporting_delayed` or `failed`). */
  readonly isLate?: true;
  /** The time at which the seller expects its next data, Unix ms. Present if the report names one. */
  readonly nextAt?: number;
  /** The status of the media buy. Present if it is a terminal one. */
  readonly ending?: string;
}

/** The window of a media buy for which a report brought data. */
export interface ClaimedWindow {
  /** The id of the media buy's row, as in `WindowClaim`. */
  readonly id: string;
  /** The id of the media buy; present if it differs from the id of the media buy's row. */
  readonly mediaBuyId?: string;
  /**
   * The start and end of the window, Unix ms. Absent if the period fits no window of the media buy, or if none is
   * known.
   */
  readonly period?: { readonly start: number; readonly end: number };
  /** Present if another event brought data for the same window before. */
  readonly isRepeated?: true;
}

/**
 * The state of one thing, e.g. of an impairment, as an event reports it: the member `state` of an `EventClaim`. The
 * store keeps the newest state of each thing, so that a reconciler can report a change that no webhook brought.
 */
export interface StateClaim {
  /** The id of the impairment or other thing that has the state. The id stays the same when the state changes. */
  readonly id: string;
  /** The time of the change, Unix ms. If the event names none it is absent, and the store's current time is used. */
  readonly at?: number;
  /** The new state, as the seller names it. */
  readonly to?: string;
  /**
   * The state before the change, as the seller names it. Present e.g. for an impairment, which is over once its state
   * is again the `from` of its first change.
   */
  readonly from?: string;
  /** Present if the event says that the state has ended, e.g. that the impairment is resolved. */
  readonly ended?: true;
  /** The media buy that the event names. */
  readonly mediaBuyId?: string;
  /** The row that keeps the state. Absent: no row keeps it, and the event is handled without it. */
  readonly holder?: StateHolderName;
  /**
   * Present if the state was pulled: the buyer asked the seller for it. The value is the state that the store had kept
   * when it was compared with the seller's, or null. If the store keeps another state by now, the event is a duplicate.
   */
  readonly seen?: KeptState | null;
}

/**
 * Names the row that keeps the state of a `StateClaim`. `stream`: the account of a media buy. `operation`: the
 * operation whose row names the media buy. `snapshot`: the states of a subscription.
 */
export interface StateHolderName {
  readonly kind: 'stream' | 'operation' | 'snapshot';
  readonly id: string;
}

/**
 * The state that an event reported, with the facts that the store found when it inserted the event, e.g. `isRepeated`.
 */
export interface ClaimedState {
  readonly id: string;
  /** The time of the change, Unix ms. */
  readonly at: number;
  /** Present if the state is over. */
  readonly isEnded?: true;
  /** Present if the same change was reported to the buyer before. */
  readonly isRepeated?: true;
  /** The media buy of the event, or of its operation. */
  readonly mediaBuyId?: string;
  /** The row that keeps the state. Until the event is done, the state in that row also has the event's key. */
  readonly holder?: { readonly kind: 'stream' | 'snapshot'; readonly id: string };
}

/** The state of a thing, e.g. of an impairment, as a store keeps it. */
export interface KeptState {
  /** The id of the impairment or other thing that has the state. */
  readonly id: string;
  /**
   * The time of the last change of this state, Unix ms: by the seller's clock if the seller gave a time, otherwise by
   * the store's.
   */
  readonly at: number;
  /** The new state, as the seller named it, cut to 64 characters. */
  readonly to?: string;
  /** The time at which the state was saved, on the store's clock, Unix ms. */
  readonly keptAt: number;
  /** The channel that last reported the state. */
  readonly by: 'webhook' | 'pull';
  /** The `from` of the first change that was reported of this id, cut to 64 characters. */
  readonly origin?: string;
  /** Present if an event reported that the state has ended. */
  readonly isEnded?: true;
  /** Present if the kept change is the first that was reported of this id. */
  readonly isFirst?: true;
  /** Present if a snapshot (the seller's list of present states) has shown the state as open since its last change. */
  readonly wasOpen?: true;
  /** The time since which snapshots no longer show the state, on the store's clock, Unix ms. */
  readonly absentAt?: number;
  /** The idempotency key of the event that reported the state; absent once the event is done. */
  readonly key?: string;
}

/**
 * The receiver's URL to which an event was sent, as `createRegistrations` names it: the member `via` of an
 * `EventClaim`.
 */
export interface UrlClaim {
  readonly base: string;
  readonly route: string;
  /** The ids of the media buys' rows, at most 100. Those in `ReportClaim.windows` are not repeated. */
  readonly streams: readonly string[];
}
