import type { AcceptRequest } from '../store.ts';
import { type TaskChange, taskRow } from './order.ts';
import type { RecordRow, RecordState, Rows, TaskRow, Usage } from './rule-rows.ts';

/** A parked record is looked at again after this time even if nothing freed its task. Ms: 10 min. */
export const PARKED_MS = 600_000;

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

/** Clocks of the nodes of a cluster differ by so much, and nothing has happened. Ms. */
const AHEAD_MS = 1000;

/** Set at an instant that is still to come: the store's clock was set back since. */
function isFromFuture({ setAt }: Pick<RecordRow, 'setAt'>, now: number): boolean {
  return now < setAt - AHEAD_MS;
}

/** What is left of the back-off step that the last failure began; 0: it is over. Ms. */
export function stepLeftMs(record: Pick<RecordRow, 'notBefore' | 'setAt'>, now: number): number {
  return isFromFuture(record, now) ? 0 : Math.max(0, record.notBefore - now);
}

/** A suspect waits for so long after its first charge, four times that after the next one, and so on up to the longest. Ms. */
const CHARGED_MS = 60_000;
const LONGEST_CHARGED_MS = 3_600_000;

/** Until when a suspect is put off that is charged now, for the `crashes`-th time (admission.md §4.6). */
export function putOffUntil(
  record: Pick<RecordRow, 'notBefore' | 'setAt'>,
  crashes: number,
  now: number,
): number {
  const waitMs = Math.min(CHARGED_MS * 4 ** (crashes - 1), LONGEST_CHARGED_MS);
  return Math.max(notBeforeAt(record, now), now + waitMs);
}

/** How long a suspect still has to wait because of a charge; 0: nothing keeps it from its turn. Ms. */
export function putOffMs(record: RecordRow, now: number): number {
  return record.suspect && record.crashes > 0 ? stepLeftMs(record, now) : 0;
}

/** For who sets `setAt` anew: when a wait that was set in the future is over. */
export function notBeforeAt(record: Pick<RecordRow, 'notBefore' | 'setAt'>, now: number): number {
  return isFromFuture(record, now) ? Math.min(record.notBefore, now) : record.notBefore;
}

/** How far the clock was set back since, at least; 0: it was not. Ms. */
export function steppedMs({ setAt }: RecordRow, now: number): number {
  return isFromFuture({ setAt }, now) ? setAt - now : 0;
}

/**
 * A lease from the future, as long as it was, from now on: a living owner renews it, a dead one's ends one lease later.
 * @returns the record as it is now.
 */
export function stamped(rows: Rows, record: RecordRow, now: number): RecordRow {
  if (record.state !== 'leased' || !isFromFuture(record, now)) return record;
  const leaseUntil = now + Math.max(0, record.leaseUntil - record.setAt);
  const put = { ...record, leaseUntil, notBefore: notBeforeAt(record, now), parkedUntil: 0, setAt: now };
  rows.updateRecord(put);
  return put;
}

/** What was found due later than any row should be, put right. @returns whether there was anything to put right. */
export function mend(rows: Rows, record: RecordRow, now: number): boolean {
  if (isFromFuture(record, now)) {
    if (record.state === 'leased') stamped(rows, record, now);
    else rows.updateRecord({ ...record, notBefore: notBeforeAt(record, now), parkedUntil: 0, setAt: now });
    return true;
  }
  // It was put off while a worker looked at it (admission.md §8.15), and the clock was set back since.
  const at = dueAt(record);
  if (at === null || at > now) return false;
  rows.updateRecord(record);
  return true;
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
