/** contract.md §6.8 and verification.md §7.33. Unknown members survive; `null` is how many senders write absence. */
export interface DeliveryReport {
  /** `window_update`: figures of a window that was reported before have changed. */
  readonly notification_type: 'scheduled' | 'final' | 'delayed' | 'adjusted' | 'window_update';
  readonly sequence_number?: number | null | undefined;
  readonly reporting_period?: ReportingPeriod | null | undefined;
  readonly currency?: string | null | undefined;
  /** ISO 8601: when the next report is due. */
  readonly next_expected_at?: string | null | undefined;
  /** Some media buys' figures are missing: `unavailable_count` of them. */
  readonly partial_data?: boolean | null | undefined;
  readonly unavailable_count?: number | null | undefined;
  readonly media_buy_deliveries?: readonly MediaBuyDelivery[] | null | undefined;
  readonly [member: string]: unknown;
}

/** The time that a delivery report covers. */
export interface ReportingPeriod {
  /** ISO 8601. */
  readonly start: string;
  readonly end: string;
  readonly [member: string]: unknown;
}

/** One media buy of a delivery report. */
export interface MediaBuyDelivery {
  readonly media_buy_id: string;
  /** Media buy lifecycle or reporting state, e.g. `active`, `reporting_delayed`: not the task's status. */
  readonly status?: string | null | undefined;
  readonly totals?: DeliveryTotals | null | undefined;
  readonly by_package?: readonly unknown[] | null | undefined;
  /** ISO 8601: when figures that are not there yet are due. */
  readonly expected_availability?: string | null | undefined;
  /** These figures replace those of an earlier report. */
  readonly is_adjusted?: boolean | null | undefined;
  /** These figures will not change any more, since `finalized_at` (ISO 8601). */
  readonly is_final?: boolean | null | undefined;
  readonly finalized_at?: string | null | undefined;
  readonly [member: string]: unknown;
}

/** What was delivered and spent, in the report's currency. */
export interface DeliveryTotals {
  readonly impressions?: number | null | undefined;
  readonly spend?: number | null | undefined;
  readonly clicks?: number | null | undefined;
  readonly [member: string]: unknown;
}
