import type { RetryLimits } from '../contract.ts';
import type { Lessee } from './lease.ts';
import { attemptsBefore, leased } from './lease.ts';
import { holderOf, isAfterTerminal, isAhead, isStale, markExpiry, taskRow } from './order.ts';
import { freeTask } from './park.ts';
import type { RecordRow, Rows, TaskRow } from './rows.ts';
import { notBeforeAt, stamped } from './set-at.ts';

/** Who wants to run a record that nobody holds: an accept in inline mode, or a worker. */
export interface Claimant extends Lessee {
  readonly retry: RetryLimits;
  /** It runs a suspect apart from others: its process has kept its one place for it. */
  readonly takesSuspects: boolean;
  /** Whether its process runs this record, perhaps on a lease that has run out: then the task is held. */
  readonly runsHere?: (record: RecordRow) => boolean;
}

/**
 * What came of it; `record` is what was written. `suspect`: it is one, and waits for who takes suspects. `busy`: nothing
 * was written, for `holder` has the task.
 */
export type Claimed =
  | { readonly kind: 'won' | 'died' | 'stale' | 'suspect'; readonly record: RecordRow }
  | { readonly kind: 'busy'; readonly record: RecordRow; readonly holder: RecordRow };

/**
 * `Store.accept`, rule 2, for a record that is QUEUED or whose lease is over; `StoreInbox.lease` for each candidate.
 * @param note what the caller writes on the record beside the rest: an accept remembers its answer.
 */
export function claimRecord(
  rows: Rows,
  found: RecordRow,
  claimant: Claimant,
  now: number,
  note: (kind: 'won' | 'died' | 'stale') => Partial<RecordRow>,
): Claimed {
  const known = takenBack(rows, found, now);
  const record = known.state === 'leased' ? lapsed(rows, known, claimant, now) : known;
  if (isUsedUp(record, claimant.retry)) return end(rows, { ...record, state: 'dead' }, note('died'), now);
  const task = record.task ? rows.task(record.sender, record.task.id, now) : undefined;
  const holder = holderOf(rows, task, now, claimant.runsHere);
  if (holder) return { kind: 'busy', record, holder: stamped(rows, holder, now) };
  if (isStale(record.task, task)) {
    const expiresAt = now + claimant.retentionMs;
    return end(rows, { ...record, state: 'stale', bodyBytes: 0, expiresAt }, note('stale'), now);
  }
  if (record.suspect && !claimant.takesSuspects) return putAside(rows, record, now);
  const won = { ...take(rows, record, claimant, now, task), ...note('won') };
  rows.updateRecord(won);
  return { kind: 'won', record: won };
}

/** A crash that was charged, and was none: the process is heard again. */
function takenBack(rows: Rows, found: RecordRow, now: number): RecordRow {
  if (found.crashedIn === null || !rows.isProcessAlive(found.crashedIn, now)) return found;
  return { ...found, crashes: found.crashes - 1, crashedIn: null };
}

/**
 * A lease that ran out. The claimant's own: it asks again because it was not told, so no handler ran. Of a process that
 * lives: the store was away, or the process was; the attempt stays counted. Else a crash, by whichever of the events that
 * ran there: the attempt is given back, and the record becomes a suspect; one that was a suspect ran alone, and is charged.
 * The owner goes: the accept that won is not to find it its own.
 */
function lapsed(rows: Rows, found: RecordRow, claimant: Claimant, now: number): RecordRow {
  const { process, suspect, crashes } = found;
  const queued = { ...found, state: 'queued', owner: null } as const;
  const before = attemptsBefore(found);
  if (found.owner === claimant.owner) return { ...queued, attempts: before };
  if (process !== null && (process === claimant.process || rows.isProcessAlive(process, now))) return queued;
  const crashed = { ...queued, attempts: before, suspect: true };
  return suspect ? { ...crashed, crashes: crashes + 1, crashedIn: process } : crashed;
}

/** Due since its lease ran out, for who takes suspects; its task is free for others meanwhile. */
function putAside(rows: Rows, suspect: RecordRow, now: number): Claimed {
  const record = {
    ...suspect,
    parkedUntil: 0,
    notBefore: Math.max(notBeforeAt(suspect, now), suspect.leaseUntil),
    setAt: now,
  };
  rows.updateRecord(record);
  freeTask(rows, record, now);
  return { kind: 'suspect', record };
}

/** Attempts count at the lease, and are given back by a crash; crashes are what bounds an event that ends its process. */
function isUsedUp(record: RecordRow, retry: RetryLimits): boolean {
  return record.attempts >= retry.attempts || record.crashes >= retry.crashes;
}

function end(
  rows: Rows,
  ended: RecordRow & { readonly state: 'dead' | 'stale' },
  note: Partial<RecordRow>,
  now: number,
): Claimed {
  const expiresAt = ended.state === 'dead' ? null : ended.expiresAt;
  const record: RecordRow = { ...ended, owner: null, acked: true, parkedUntil: 0, expiresAt, ...note };
  rows.updateRecord(record);
  // It may have been the one that was told of its task's freedom: the next one is, in its place.
  freeTask(rows, record, now);
  return { kind: ended.state === 'dead' ? 'died' : 'stale', record };
}

/** Takes the task too. What is said of the event's place in it is as of now. */
function take(
  rows: Rows,
  record: RecordRow,
  claimant: Claimant,
  now: number,
  task: TaskRow | undefined,
): RecordRow {
  if (record.task) {
    const of = { sender: record.sender, id: record.task.id };
    const expiresAt = markExpiry(now, claimant.retentionMs);
    rows.saveTask(taskRow(task, of, { holder: record.key, expiresAt }));
  }
  const place = { ahead: isAhead(record.task, now), afterTerminal: isAfterTerminal(record.task, task) };
  return { ...leased(record, claimant, now), ...place };
}
