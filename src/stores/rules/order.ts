// Orders the statuses of a task by its mark, and keeps its handlers apart (contract.md §9.7; admission.md §5.1 to §5.6).
// Called by the other rules and by the optimistic store's `lease`.
import type { AcceptRequest, TaskClaim } from '../store.ts';
import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../constants.ts';
import type { RecordRow, Rows, TaskRow } from './rule-rows.ts';

/**
 * True for an event older than its task's mark, or at the mark of a terminal status and not terminal itself
 * (admission.md §5.3). Events without an instant are not ordered.
 */
export function isStale(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  if (claim.instant === task.mark) return task.markTerminal && !claim.terminal;
  return claim.instant < task.mark;
}

/** True if the newest applied status is terminal and this event is newer: it is applied, with a warning. */
export function isAfterTerminal(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  return task.markTerminal && claim.instant > task.mark;
}

/**
 * True if an event's time lies so far ahead of the store's clock that it must not raise the mark. If it did, every
 * true status would be stale.
 */
export function isAhead(claim: TaskClaim | null | undefined, now: number): boolean {
  return claim?.instantMs !== undefined && claim.instantMs > now + MARK_AHEAD_MS;
}

/** The record for which a task is asked. */
interface Asker {
  readonly key: string;
  /** True for a record that the asking process still runs, even if its lease has run out. */
  readonly runsHere?: ((holder: RecordRow) => boolean) | undefined;
}

/** The longest wait for a task that nothing frees. Ms: 10 min. */
export const PARKED_MS = 600_000;

/**
 * Returns the other record that holds the task, if there is one. It holds the task by a live lease: handlers of one
 * task never overlap. It also holds it if it was handed out and is undecided by no fault of its own. Then nothing of
 * its task goes before it (admission.md §5.5). If nobody takes it though it is due, as without a worker, the task
 * waits for it only for `PARKED_MS`.
 */
export function holderOf(
  rows: Rows,
  task: TaskRow | undefined,
  now: number,
  asker: Asker,
): RecordRow | undefined {
  if (task === undefined || task.holder === null) return undefined;
  const holder = rows.record(task.sender, task.holder, now);
  // A key that was forgotten may have come again for another task.
  return holder?.task?.id === task.id && holds(holder, now, asker) ? holder : undefined;
}

function holds(holder: RecordRow, now: number, { key, runsHere }: Asker): boolean {
  if (holder.state === 'queued') {
    const due = Math.max(holder.notBefore, holder.parkedUntil);
    return holder.acked && holder.key !== key && now < due + PARKED_MS;
  }
  return isLive(holder, now) || (holder.state === 'leased' && runsHere?.(holder) === true);
}

/** Makes the test for a record that the asking process runs, by the key that it named. */
export function runsHere({ runningKey }: AcceptRequest): (record: RecordRow) => boolean {
  return ({ key }) => key === runningKey;
}

/** True if the record is LEASED and its lease has not run out. */
export function isLive(record: RecordRow, now: number): boolean {
  return record.state === 'leased' && record.leaseUntil > now;
}

/** Returns when marks and notification ids expire, which outlive the records that made them. Unix ms. */
export function markExpiry(now: number, retentionMs: number): number {
  return now + Math.max(retentionMs, MARK_RETENTION_MS);
}

/** A change of a task's row. Absent members stay as they are. */
export interface TaskChange extends Pick<TaskRow, 'expiresAt'> {
  /** null: nobody holds it. */
  readonly holder?: string | null | undefined;
  readonly mark?: string;
  readonly markTerminal?: boolean;
  readonly terminal?: TaskRow['terminal'] | undefined;
  readonly told?: TaskRow['told'] | undefined;
}

/** Returns the task's row after a change; `known` is undefined for a task that is new or was forgotten. */
export function taskRow(
  known: TaskRow | undefined,
  of: { readonly sender: string; readonly id: string },
  change: TaskChange,
): TaskRow {
  const { holder, mark, markTerminal, terminal, told } = known ?? NEW_TASK;
  return {
    sender: of.sender,
    id: of.id,
    holder: change.holder === undefined ? holder : change.holder,
    mark: change.mark ?? mark,
    markTerminal: change.markTerminal ?? markTerminal,
    terminal: change.terminal ?? terminal,
    told: change.told ?? told,
    expiresAt: change.expiresAt,
  };
}

const NEW_TASK = { holder: null, mark: null, markTerminal: false, terminal: null, told: null } as const;
