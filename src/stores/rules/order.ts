// Orders the statuses of a task, and lets only one handler of a task run at a time (contract.md §9.7; admission.md §5.1
// to §5.6).
// Called by the other rules and by the optimistic store's `lease`. The `mark` of a task is the time of its newest
// applied status.
import type { AcceptRequest, TaskClaim } from '../store.ts';
import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../constants.ts';
import type { RecordRow, Rows, TaskRow } from './rule-rows.ts';

/**
 * True if an event is older than the newest applied status of its task. Also true for a non-terminal event of the same
 * time if that status is terminal (admission.md §5.3). An event without a time is never stale.
 */
export function isStale(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  if (claim.instant === task.mark) return task.markTerminal && !claim.terminal;
  return claim.instant < task.mark;
}

/**
 * True if a task's newest applied status is terminal and this event is newer. Such an event is applied, with a warning.
 */
export function isAfterTerminal(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  return task.markTerminal && claim.instant > task.mark;
}

/**
 * True if an event's time is so far ahead of the store's clock that it must not become the newest time of its task.
 * Otherwise every correct status after the event would be stale.
 */
export function isAhead(claim: TaskClaim | null | undefined, now: number): boolean {
  return claim?.instantMs !== undefined && claim.instantMs > now + MARK_AHEAD_MS;
}

/** The record for which `holderOf` finds out if its task is free. */
interface Asker {
  readonly key: string;
  /** True for a record that the caller's process still runs, even if the record's lease has expired. */
  readonly runsHere?: ((holder: RecordRow) => boolean) | undefined;
}

/**
 * The longest time for which a record that nobody runs keeps the other records of its task waiting. It is also the
 * longest wait of a record for its task (`parkedUntil`), even if nothing frees the task. Ms: 10 min.
 */
export const PARKED_MS = 600_000;

/**
 * Returns the record that holds the task, so that the asking record must wait; undefined if the task is free. A record
 * with a live lease holds its task, because handlers of one task never overlap. An acknowledged record that is next to
 * run holds it too, so that no record overtakes another (admission.md §5.5). A record that is due but that nobody runs,
 * e.g. without a worker, holds its task only for `PARKED_MS`.
 */
export function holderOf(
  rows: Rows,
  task: TaskRow | undefined,
  now: number,
  asker: Asker,
): RecordRow | undefined {
  if (task === undefined || task.holder === null) return undefined;
  const holder = rows.record(task.sender, task.holder, now);
  // The record under the holder's key may belong to another task: the holder expired, and its key was used again.
  return holder?.task?.id === task.id && holds(holder, now, asker) ? holder : undefined;
}

function holds(holder: RecordRow, now: number, { key, runsHere }: Asker): boolean {
  if (isLive(holder, now) || (holder.state === 'leased' && runsHere?.(holder) === true)) return true;
  return holder.key !== key && isOwedItsTurn(holder, now, runsHere?.(holder) === true);
}

/**
 * True for an acknowledged record that is next to run: it is QUEUED, or its lease has expired. A record stays next
 * until `PARKED_MS` after it came due. A suspect whose lease has expired is not next: it ran alone, so the crash will
 * be charged to it.
 *
 * @param isHere true if the caller's process runs the record. Then `acked` does not matter, because `lease` clears it
 *   for a moment while it searches for due records.
 */
function isOwedItsTurn(
  { state, acked, suspect, ...record }: RecordRow,
  now: number,
  isHere: boolean,
): boolean {
  const since = state === 'leased' ? record.leaseUntil : record.notBefore;
  const isOpen = state === 'queued' || (state === 'leased' && !suspect);
  return (acked || isHere) && isOpen && now < Math.max(since, record.parkedUntil) + PARKED_MS;
}

/** Makes a test for the one record that the caller's process runs, which `runningKey` of the request names. */
export function runsHere({ runningKey }: AcceptRequest): (record: RecordRow) => boolean {
  return ({ key }) => key === runningKey;
}

/** True if the record is LEASED and its lease has not expired. */
export function isLive(record: RecordRow, now: number): boolean {
  return record.state === 'leased' && record.leaseUntil > now;
}

/**
 * Returns the time at which the rows of tasks and notification ids expire. These rows live longer than the records that
 * made them. Unix ms.
 */
export function markExpiry(now: number, retentionMs: number): number {
  return now + Math.max(retentionMs, MARK_RETENTION_MS);
}

/** A change of a task's row. Members that are absent or undefined keep their value. */
export interface TaskChange extends Pick<TaskRow, 'expiresAt'> {
  /** null: no record holds the task. */
  readonly holder?: string | null | undefined;
  readonly mark?: string;
  readonly markTerminal?: boolean;
  readonly terminal?: TaskRow['terminal'] | undefined;
  readonly told?: TaskRow['told'] | undefined;
}

/** Returns a task's row after a change. `known` is the row before; undefined for a task that is new or has expired. */
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
