// The constants of the store's rules, which options, stages, pollers, the contract suite and tests use too; store.ts
// has only types.
// The longest waits and leases are those of admission.md §4.11.

/**
 * The first character of the id of an operation's row among the rows of tasks. Ids of tasks and operations are
 * printable ASCII when they arrive, so the control character keeps the two apart.
 */
const OPERATION = '\u0001';

/**
 * Returns the id of the row that an operation has among the rows of tasks. @param id the operation's id, printable
 * ASCII.
 */
export const operationRowId = (id: string): string => OPERATION + id;

/** True for the id of an operation's row among the rows of tasks. */
export const isOperationRow = (id: string): boolean => id.startsWith(OPERATION);

/**
 * The largest amount by which an event's time may be ahead of the store's clock and still become the newest time of its
 * task (`mark`). Ms: 5 min.
 */
export const MARK_AHEAD_MS = 300_000;

/**
 * The newest times of tasks, and notification ids, are remembered for this time after their last change, or for
 * `retentionMs` if that is longer. Ms: 30 days.
 */
export const MARK_RETENTION_MS: number = 30 * 86_400_000;

/** An accept reports a limit as nearly used up (`pressure`) once this share of the limit is used. */
export const PRESSURE_SHARE = 0.8;

/**
 * The longest waits and the longest lease (admission.md §4.11). A time further ahead than the constants below was saved
 * before the store's clock was set back. The constants are not options, because the processes of one store may have
 * different options. No option exceeds them.
 */

/** The longest wait of an event for its next run: after a failure, for its task, or as a suspect. Ms: 1 h. */
export const LONGEST_WAIT_MS = 3_600_000;

/**
 * An event that would wait longer than this is due immediately, because the store's clock must have been set back. It
 * is the longest wait plus 10 s. The clocks of a store's nodes, and a process's estimate of these clocks, may differ by
 * 10 s. Ms.
 */
export const FAR_WAIT_MS: number = LONGEST_WAIT_MS + 10_000;

/** The longest lease of an event or a poll. Ms: 10 min. */
export const LONGEST_LEASE_MS = 600_000;

/**
 * The longest wait of a polled task or subscription for its next request. An option or the seller sets it to at most a
 * day, and jitter is added. Ms: 2 days.
 */
export const LONGEST_TURN_MS: number = 2 * 86_400_000;
