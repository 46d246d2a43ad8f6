// Values of the store's rules that options, stages, pollers, the contract suite and tests share; store.ts has only
// types.
// The longest waits and leases are those of admission.md §4.11.

/** The control character keeps the ids of operations and tasks apart: both are printable ASCII when they arrive. */
const OPERATION = '\u0001';

/** Returns the id of the row that an operation has among the rows of tasks. @param id of printable ASCII. */
export const operationRowId = (id: string): string => OPERATION + id;

/** True if an id among the rows of tasks belongs to an operation. */
export const isOperationRow = (id: string): boolean => id.startsWith(OPERATION);

/** An event whose time is further ahead of the store's clock than this does not raise its task's mark. Ms: 5 min. */
export const MARK_AHEAD_MS = 300_000;

/** Task marks and notification ids outlive their last change by max(retention, this). Ms: 30 days. */
export const MARK_RETENTION_MS: number = 30 * 86_400_000;

/** Limits at this share of their value are reported as `pressure`. */
export const PRESSURE_SHARE = 0.8;

/**
 * The longest waits and the longest lease (admission.md §4.11). A time further ahead than these was set before the
 * store's clock was set back. They are constants, because the processes of one store may have different options; no
 * option exceeds them.
 */

/** The longest wait of an event for its next run: after a failure, for its task, or as a suspect. Ms: 1 h. */
export const LONGEST_WAIT_MS = 3_600_000;

/**
 * An event that would wait for longer than this is due at once. It is the longest wait plus 10 s. By so much the
 * clocks of a store's nodes, and a process's knowledge of them, may differ. Ms.
 */
export const FAR_WAIT_MS: number = LONGEST_WAIT_MS + 10_000;

/** The longest lease of an event or a poll. Ms: 10 min. */
export const LONGEST_LEASE_MS = 600_000;

/** The longest wait of a polled task or subscription for its next turn: a seller's pause of a day, and jitter. Ms: 2 d. */
export const LONGEST_TURN_MS: number = 2 * 86_400_000;
