import { dueAt } from './park.ts';
import type { RecordRow, Rows } from './rows.ts';

/** Clocks of the nodes of a cluster differ by so much, and nothing has happened. Ms. */
const AHEAD_MS = 1000;

/** Set at an instant that is still to come: the store's clock was set back since. */
export function isFromFuture({ setAt }: Pick<RecordRow, 'setAt'>, now: number): boolean {
  return now < setAt - AHEAD_MS;
}

/** What is left of the back-off step that the last failure began; 0: it is over. Ms. */
export function stepLeftMs(record: Pick<RecordRow, 'notBefore' | 'setAt'>, now: number): number {
  return isFromFuture(record, now) ? 0 : Math.max(0, record.notBefore - now);
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
