/* Of delivery reports what is needed before one comes: no schema is loaded for it. */

/** `task_type` of a report's envelope. */
export const REPORT_TASK_TYPE = 'media_buy_delivery';

/** Rows of a report that are counted by the account of reports (owed.md §3.1). */
export const MAX_REPORTED_WINDOWS = 10_000;
