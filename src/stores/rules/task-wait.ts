// Computes waits of records: after a failure or a crash, for a busy task, after the clock was set back (admission.md
// §4.5, §4.6, §4.11, §8.10).
// Called by the other rules, and by the memory and optimistic stores. Also defines `Accepting`, the state of one
// accept.
import { FAR_WAIT_MS, LONGEST_LEASE_MS, LONGEST_WAIT_MS } from '../constants.ts';
import type { AcceptRequest } from '../store.ts';
import { PARKED_MS, type TaskChange, taskRow } from './order.ts';
import type { RecordRow, RecordState, Rows, TaskRow, Usage } from './rule-rows.ts';

type Due = (row: RecordRow) => number | null;

const never: Due = () => null;

const DUE: Record<RecordState, Due> = {
  queued: ({ notBefore, parkedUntil }) => Math.max(notBefore, parkedUntil),
  leased: ({ leaseUntil, parkedUntil }) => Math.max(leaseUntil, parkedUntil),
  applied: never,
  stale: never,
  dead: never,
};

/**
 * Returns the time from which workers may lease a record; null: never. A record that was never acknowledged waits until
 * its sender sends it again.
 */
export function dueAt(row: RecordRow): number | null {
  return row.acked ? DUE[row.state](row) : null;
}

/**
 * Returns the time until which a record waits for its task, which `holder` holds. An acknowledged holder frees the task
 * when it ends, at the latest when a worker finds its lease expired. A holder that is not acknowledged (mode inline)
 * may depend on its sender for ever. In that case the wait ends with the holder's lease.
 */
export function parkedUntil(holder: RecordRow, now: number): number {
  return holder.acked ? now + PARKED_MS : holder.leaseUntil;
}

/**
 * Frees the task of a record. The oldest record that waits for the task becomes its holder, and is due. If none waits,
 * the task's row names no holder, so that an accept need not read the record that held the task last.
 *
 * An index finds the oldest waiting record (`Write.waitsFor`). Other ways were measured on Postgres, with 300 events of
 * a task in three processes:
 *
 * - Waking all waiting records takes 26 statements an event instead of 4, and gives a tenth of the rate.
 * - If the task's row names one waiting record, all others sleep until the lease is over: two events run in the time of
 *   a lease.
 * - A backend that wakes the oldest record by itself would save half a statement an event and no code. It meets
 *   deadlocks, because it locks a record out of the order in which commits lock.
 *
 * @param mark returns further changes of the task's row that the end of the record makes.
 */
export function freeTask(
  rows: Rows,
  { sender, key, task }: RecordRow,
  now: number,
  mark?: (known: TaskRow | undefined) => TaskChange | undefined,
): void {
  if (!task) return;
  const known = rows.task(sender, task.id, now);
  const isHolder = known?.holder === key;
  const change = mark?.(known) ?? (isHolder && { expiresAt: known.expiresAt });
  const next = rows.parked(sender, task.id);
  if (change) {
    const holder = isHolder && { holder: next?.acked === true ? next.key : null };
    rows.saveTask(taskRow(known, { sender, id: task.id }, { ...change, ...holder }));
  }
  if (next) rows.updateRecord({ ...next, parkedUntil: 0 });
}

/**
 * True if a wait until `at` is over. Also true if `at` is further ahead than any wait can be: then the store's clock
 * was set back after the wait began (admission.md §4.11). Unix ms.
 */
export function isDue(at: number, now: number, longestMs: number = FAR_WAIT_MS): boolean {
  return at <= now || at > now + longestMs;
}

/** Returns the time that is left of a wait until `at`; 0 if the wait is over. Ms. */
export function leftMs(at: number, now: number, longestMs?: number): number {
  return isDue(at, now, longestMs) ? 0 : at - now;
}

/** Returns the time that is left of the wait after the last failure (back-off); 0 if the wait is over. Ms. */
export function stepLeftMs({ notBefore }: Pick<RecordRow, 'notBefore'>, now: number): number {
  return leftMs(notBefore, now);
}

/**
 * The wait after the first crash that is charged to a suspect. Each further crash makes the wait four times as long, up
 * to `LONGEST_WAIT_MS`. Ms: 1 min.
 */
const CHARGED_MS = 60_000;

/**
 * Returns the time until which a suspect has to wait, now that its `crashes`-th crash is charged (admission.md §4.6).
 */
export function putOffUntil(record: Pick<RecordRow, 'notBefore'>, crashes: number, now: number): number {
  const waitMs = Math.min(CHARGED_MS * 4 ** (crashes - 1), LONGEST_WAIT_MS);
  return now + Math.max(stepLeftMs(record, now), waitMs);
}

/** Returns the time for which a suspect still has to wait because of a charged crash; 0 if it need not wait. Ms. */
export function putOffMs(record: RecordRow, now: number): number {
  return record.suspect && record.crashes > 0 ? stepLeftMs(record, now) : 0;
}

/**
 * Shortens a live lease to the longest lease that can begin now. A living owner renews its lease in time; the lease of
 * a dead owner ends.
 */
export function shortened(record: RecordRow, now: number): RecordRow {
  return { ...record, leaseUntil: Math.min(record.leaseUntil, now + LONGEST_LEASE_MS), parkedUntil: 0 };
}

/**
 * Shortens a lease that ends later than any lease can, because the store's clock was set back.
 *
 * @returns the record, with its lease as it is now.
 */
export function seenLease(rows: Rows, record: RecordRow, now: number): RecordRow {
  if (record.state !== 'leased' || record.leaseUntil <= now + LONGEST_LEASE_MS) return record;
  const put = shortened(record, now);
  rows.updateRecord(put);
  return put;
}

/** The state of one call of accept. `now` is the store's time, read once inside the atomic step. Unix ms. */
export interface Accepting {
  readonly rows: Rows;
  readonly request: AcceptRequest;
  readonly now: number;
  /** The rows and bytes that the sender used when the atomic step began. */
  readonly used: Usage;
  /**
   * True if the delivery's bytes came before. Such a delivery may run an event that is not acknowledged, but at most
   * once in each back-off (the wait after a failure).
   */
  readonly replay: boolean;
}
