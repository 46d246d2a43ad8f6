// Orders the statuses of a task, and lets only one handler of a task run (contract.md §9.7; admission.md §5.1 to
// §5.6).
// Called by the other rules and by the optimistic store's `lease`. A task's `mark` is the time of its newest applied
// status.
import type { AcceptRequest, TaskClaim } from '../store.ts';
import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../constants.ts';
import type { RecordRow, Rows, TaskRow } from './rule-rows.ts';

/**
 * True for an event older than its task's newest applied status. Also true for a non-terminal event of the same time
 * if that status is terminal (admission.md §5.3). Events without an instant are not ordered.
 */
export function isStale(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  if (claim.instant === task.mark) return task.markTerminal && !claim.terminal;
  return claim.instant < task.mark;
}

/**
 * True if the newest applied status is terminal and this event is newer. Such an event is applied, with a warning.
 */
export function isAfterTerminal(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  return task.markTerminal && claim.instant > task.mark;
}

/**
 * True if an event's time is so far ahead of the store's clock that it must not become the task's newest time.
 * Otherwise every true status after it would be stale.
 */
export function isAhead(claim: TaskClaim | null | undefined, now: number): boolean {
  return claim?.instantMs !== undefined && claim.instantMs > now + MARK_AHEAD_MS;
}

/** The record that wants to know if its task is free. */
interface Asker {
  readonly key: string;
  /** True for a record that the asking process still runs, even if its lease has run out. */
  readonly runsHere?: ((holder: RecordRow) => boolean) | undefined;
}

/** The longest that a task waits for a record that nobody runs. Ms: 10 min. */
export const PARKED_MS = 600_000;

/**
 * Returns the other record that holds the task; undefined if there is none. A live lease holds it, because handlers
 * of one task never overlap. An acknowledged record whose turn is next holds it too, so that nothing of its task
 * overtakes it (admission.md §5.5). If nobody runs that record though it is due, as without a worker, it holds the
 * task only for `PARKED_MS`.
 */
export function holderOf(
  rows: Rows,
  task: TaskRow | undefined,
  now: number,
  asker: Asker,
): RecordRow | undefined {
  if (task === undefined || task.holder === null) return undefined;
  const holder = rows.record(task.sender, task.holder, now);
  // The holder's key may have been forgotten and used again for another task.
  return holder?.task?.id === task.id && holds(holder, now, asker) ? holder : undefined;
}

function holds(holder: RecordRow, now: number, { key, runsHere }: Asker): boolean {
  if (isLive(holder, now) || (holder.state === 'leased' && runsHere?.(holder) === true)) return true;
  return holder.key !== key && isOwedItsTurn(holder, now, runsHere?.(holder) === true);
}

/**
 * True for an acknowledged event that is to run next: it has not run, was given back, or its lease has run out. A
 * suspect whose lease has run out holds nothing: it ran alone, and the next claim charges it with a crash.
 *
 * @param isHere true if the asking process runs it. Then `acked` does not matter, because its own search clears it
 *   meanwhile.
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

/** Makes a test for the record that the asking process runs, by `runningKey` of its request. */
export function runsHere({ runningKey }: AcceptRequest): (record: RecordRow) => boolean {
  return ({ key }) => key === runningKey;
}

/** True if the record is LEASED and its lease has not run out. */
export function isLive(record: RecordRow, now: number): boolean {
  return record.state === 'leased' && record.leaseUntil > now;
}

/** Returns when the rows of tasks and notification ids expire, which outlive the records that made them. Unix ms. */
export function markExpiry(now: number, retentionMs: number): number {
  return now + Math.max(retentionMs, MARK_RETENTION_MS);
}

/** A change of a task's row. Members that are absent or undefined keep their value. */
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
