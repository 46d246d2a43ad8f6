import type { RetryLimits } from '../contract.ts';
import type { Lessee } from './lease.ts';
import { leased } from './lease.ts';
import { holderOf, isAfterTerminal, isAhead, isStale, markExpiry, taskRow } from './order.ts';
import { freeTask } from './park.ts';
import type { RecordRow, Rows, TaskRow } from './rows.ts';

/** Who wants to run a record that nobody holds: an accept in inline mode, or a worker. */
export interface Claimant extends Lessee {
  readonly retry: RetryLimits;
}

/** What came of it; `record` is what was written. `busy`: nothing was, for `holder` has the task. */
export type Claimed =
  | { readonly kind: 'won' | 'died' | 'stale'; readonly record: RecordRow }
  | { readonly kind: 'busy'; readonly holder: RecordRow };

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
  const record = found.state === 'leased' ? lapsed(found, claimant.owner) : found;
  if (isUsedUp(record, claimant.retry)) return end(rows, { ...record, state: 'dead' }, note('died'));
  const task = record.task ? rows.task(record.sender, record.task.id, now) : undefined;
  const holder = holderOf(rows, task, now);
  if (holder) return { kind: 'busy', holder };
  if (isStale(record.task, task)) {
    const expiresAt = now + claimant.retentionMs;
    return end(rows, { ...record, state: 'stale', bodyBytes: 0, expiresAt }, note('stale'));
  }
  const won = { ...take(rows, record, claimant, now, task), ...note('won') };
  rows.updateRecord(won);
  return { kind: 'won', record: won };
}

/**
 * A lease that ran out. Its process died, which is counted here, unless the claimant had it: it asks again because it
 * was not told, so no handler ran. The owner goes: the accept that won is not to find it its own.
 */
function lapsed(found: RecordRow, claimant: string): RecordRow {
  const queued = { ...found, state: 'queued', owner: null } as const;
  if (found.owner === claimant) return { ...queued, attempts: found.attempts - 1 };
  return { ...queued, crashes: found.crashes + 1 };
}

/** Attempts count at lease, so an event that kills its process comes to its end too. */
function isUsedUp(record: RecordRow, retry: RetryLimits): boolean {
  return record.attempts >= retry.attempts || record.crashes >= retry.crashes;
}

function end(
  rows: Rows,
  ended: RecordRow & { readonly state: 'dead' | 'stale' },
  note: Partial<RecordRow>,
): Claimed {
  const expiresAt = ended.state === 'dead' ? null : ended.expiresAt;
  const record: RecordRow = { ...ended, owner: null, acked: true, parkedUntil: 0, expiresAt, ...note };
  rows.updateRecord(record);
  // It may have been the one that was told of its task's freedom: the next one is, in its place.
  freeTask(rows, record);
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
