// Constants of delivery reports that are needed before the schemas are loaded.
// Used by the stages, `observe` and the readers of reports.

/** `task_type` of a report's envelope. */
export const REPORT_TASK_TYPE = 'media_buy_delivery';

/** Most rows of a report for which reports are counted as received (owed.md §3.1). */
export const MAX_REPORTED_WINDOWS = 10_000;
