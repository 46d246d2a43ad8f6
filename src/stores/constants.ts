/* Values that the rules of the store, its contract suite and the tests share. `store.ts` has types alone. */

/** The control character keeps operations and tasks apart, for receivers hand in ids of printable ASCII. */
const OPERATION = '\u0001';

/** Of the row that an operation has among the tasks. @param id of printable ASCII. */
export const operationRowId = (id: string): string => OPERATION + id;

/** Whether an id among the tasks is an operation's. */
export const isOperationRow = (id: string): boolean => id.startsWith(OPERATION);

/** An instant more than this ahead of the store's clock does not raise its task's mark. Ms. */
export const MARK_AHEAD_MS = 300_000;

/** Task marks and notification ids outlive their last change by max(retention, this). Ms: 30 days. */
export const MARK_RETENTION_MS: number = 30 * 86_400_000;

/** Limits at this share of their value are reported as `pressure`. */
export const PRESSURE_SHARE = 0.8;

/*
 * The longest waits and the longest lease (admission.md §4.11). What is to come later was set before the store's clock was
 * set back. Processes of one store may have different options, so these are none: no option exceeds them.
 */

/** An event waits no longer for its next run: back-off, park, distance of a suspect. Ms: 1 h. */
export const LONGEST_WAIT_MS = 3_600_000;

/**
 * What an event waits for further ahead than this is due: the longest wait, and by how much clocks of a store's nodes, and
 * what a process knows of them, may differ. Ms.
 */
export const FAR_WAIT_MS: number = LONGEST_WAIT_MS + 10_000;

/** No lease is longer, of an event or a poll. Ms: 10 min. */
export const LONGEST_LEASE_MS = 600_000;

/** A task that is polled, or a subscription, waits no longer for its next turn: a seller's pause of a day, and jitter. Ms: 2 days. */
export const LONGEST_TURN_MS: number = 2 * 86_400_000;
