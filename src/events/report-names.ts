// Constants of delivery reports that are needed before the schemas are loaded.
// Used by the stages, `observe` and the readers of reports.

/** The `task_type` in the envelope of a delivery report. */
export const REPORT_TASK_TYPE = 'media_buy_delivery';

/**
 * The largest number of media buys for which one report is recorded as received. Further media buys of the report cause
 * a warning (owed.md §3.1).
 */
export const MAX_REPORTED_WINDOWS = 10_000;
