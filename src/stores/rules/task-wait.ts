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

/** When workers are to look at a record; null: never. What was never acknowledged is its sender's to bring again. */
export function dueAt(row: RecordRow): number | null {
  return row.acked ? DUE[row.state](row) : null;
}

/**
 * How long a record waits whose task `holder` holds. A holder that was acknowledged comes to an end that frees the
 * task, if only under a worker that finds its lease over; one of inline mode may be left to its sender without end.
 */
export function parkedUntil(holder: RecordRow, now: number): number {
  return holder.acked ? now + PARKED_MS : holder.leaseUntil;
}

/**
 * A record gives its task up: nobody holds it, and the next one that waits for it is due, so that workers need not go
 * through all. A free task says so itself, and so an accept need not look at the record that had it last.
 *
 * An index finds the next one (`Write.waitsFor`). Without it, measured with 300 events of a task in three processes, an end
 * that wakes all takes 26 statements an event in place of 4, and a tenth of the rate (Postgres); a task's row that names one
 * waiter runs two events a lease. A backend that wakes the oldest by itself saves half a statement an event and no code,
 * and meets deadlocks: it locks a record out of the order in which commits lock.
 * @param mark what else the end changes of the task.
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
  if (change)
    rows.saveTask(taskRow(known, { sender, id: task.id }, isHolder ? { ...change, holder: null } : change));
  const next = rows.parked(sender, task.id);
  if (next) rows.updateRecord({ ...next, parkedUntil: 0 });
}

/**
 * Whether what waits until `at` waits no longer: its time has come, or is further ahead than any wait is long. Then the
 * store's clock was set back since (admission.md §4.11). Unix ms.
 */
export function isDue(at: number, now: number, longestMs: number = FAR_WAIT_MS): boolean {
  return at <= now || at > now + longestMs;
}

/** What is left until then; 0: it is due. Ms. */
export function leftMs(at: number, now: number, longestMs?: number): number {
  return isDue(at, now, longestMs) ? 0 : at - now;
}

/** What is left of the back-off step that the last failure began; 0: it is over. Ms. */
export function stepLeftMs({ notBefore }: Pick<RecordRow, 'notBefore'>, now: number): number {
  return leftMs(notBefore, now);
}

/** A suspect waits for so long after its first charge, four times that after the next one, and so on up to the longest wait. Ms. */
const CHARGED_MS = 60_000;

/** Until when a suspect is put off that is charged now, for the `crashes`-th time (admission.md §4.6). */
export function putOffUntil(record: Pick<RecordRow, 'notBefore'>, crashes: number, now: number): number {
  const waitMs = Math.min(CHARGED_MS * 4 ** (crashes - 1), LONGEST_WAIT_MS);
  return now + Math.max(stepLeftMs(record, now), waitMs);
}

/** How long a suspect still has to wait because of a charge; 0: nothing keeps it from its turn. Ms. */
export function putOffMs(record: RecordRow, now: number): number {
  return record.suspect && record.crashes > 0 ? stepLeftMs(record, now) : 0;
}

/** A live lease, no longer than one can be from now on: a living owner renews it, a dead one's ends then. */
export function shortened(record: RecordRow, now: number): RecordRow {
  return { ...record, leaseUntil: Math.min(record.leaseUntil, now + LONGEST_LEASE_MS), parkedUntil: 0 };
}

/** Shortens a lease that ends later than one can. @returns the record as it is now. */
export function seenLease(rows: Rows, record: RecordRow, now: number): RecordRow {
  if (record.state !== 'leased' || record.leaseUntil <= now + LONGEST_LEASE_MS) return record;
  const put = shortened(record, now);
  rows.updateRecord(put);
  return put;
}

/** One accept as it runs: `now` is the store's clock, read once inside the atomic step. Unix ms. */
export interface Accepting {
  readonly rows: Rows;
  readonly request: AcceptRequest;
  readonly now: number;
  /** What the sender used when the step began. */
  readonly used: Usage;
  /** The bytes were seen before: they continue an event that is not safe, at most once a back-off step. */
  readonly replay: boolean;
}
