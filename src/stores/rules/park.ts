import type { TaskChange } from './order.ts';
import { taskRow } from './order.ts';
import type { RecordRow, RecordState, Rows, TaskRow } from './rows.ts';

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
 * task, if only under a worker that finds its lease over; one of inline mode may be left to its sender for ever.
 */
export function parkedUntil(holder: RecordRow, now: number): number {
  return holder.acked ? now + PARKED_MS : holder.leaseUntil;
}

/**
 * A record gives its task up: nobody holds it, and the next one that waits for it is due, so that workers need not go
 * through all. A free task says so itself, and so an accept need not look at the record that had it last.
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
