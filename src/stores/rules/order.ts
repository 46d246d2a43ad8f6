import type { AcceptRequest, TaskClaim } from '../store.ts';
import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../constants.ts';
import type { RecordRow, Rows, TaskRow } from './rule-rows.ts';

/**
 * Ordering of one task's statuses (contract.md §9.7; admission.md §5.3): older than the mark, or equal to a terminal one and
 * not terminal itself. Events without an instant are not ordered.
 */
export function isStale(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  if (claim.instant === task.mark) return task.markTerminal && !claim.terminal;
  return claim.instant < task.mark;
}

/** The newest status applied is terminal and this event is newer still: applied, but worth a warning. */
export function isAfterTerminal(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (claim?.instant === undefined || task === undefined || task.mark === null) return false;
  return task.markTerminal && claim.instant > task.mark;
}

/** So far ahead of the store's clock that it must not raise the mark: it would make every true status stale. */
export function isAhead(claim: TaskClaim | null | undefined, now: number): boolean {
  return claim?.instantMs !== undefined && claim.instantMs > now + MARK_AHEAD_MS;
}

/** Who asks for a task. */
interface Asker {
  readonly key: string;
  /** Of a record whose lease has run out: whether the asking process runs it still. */
  readonly runsHere?: ((holder: RecordRow) => boolean) | undefined;
}

/** What waits for a task goes on after this time even if nothing freed it. Ms: 10 min. */
export const PARKED_MS = 600_000;

/**
 * The other record that holds the task: by a live lease, for handlers of one task never overlap; or because it was handed out
 * and is undecided by no fault of its own, so that nothing of its task goes before it again (admission.md §5.5). If nobody
 * takes it though it is due, as in a deployment without workers, the task waits for it at most 10 minutes.
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
  if (isLive(holder, now) || (holder.state === 'leased' && runsHere?.(holder) === true)) return true;
  return holder.key !== key && isOwedItsTurn(holder, now);
}

/**
 * Acknowledged, handed out, and not charged: given back, or its lease has run out, also before anybody has looked at it. A
 * suspect whose lease has run out ran alone: the next look charges it.
 */
function isOwedItsTurn({ state, acked, suspect, ...record }: RecordRow, now: number): boolean {
  const since = state === 'leased' ? record.leaseUntil : record.notBefore;
  const isOpen = state === 'queued' || (state === 'leased' && !suspect);
  return acked && isOpen && now < Math.max(since, record.parkedUntil) + PARKED_MS;
}

/** Whether the process that asks runs a record, as it says itself. */
export function runsHere({ runningKey }: AcceptRequest): (record: RecordRow) => boolean {
  return ({ key }) => key === runningKey;
}

/** LEASED, and the lease has not run out. */
export function isLive(record: RecordRow, now: number): boolean {
  return record.state === 'leased' && record.leaseUntil > now;
}

/** Marks and notification ids outlive the records that made them. Unix ms. */
export function markExpiry(now: number, retentionMs: number): number {
  return now + Math.max(retentionMs, MARK_RETENTION_MS);
}

/** What stays as it is, is absent. */
export interface TaskChange extends Pick<TaskRow, 'expiresAt'> {
  /** null: nobody. */
  readonly holder?: string | null | undefined;
  readonly mark?: string;
  readonly markTerminal?: boolean;
  readonly terminal?: TaskRow['terminal'] | undefined;
  readonly told?: TaskRow['told'] | undefined;
}

/** The task's row after a change; `known` is undefined for a task that is new or was forgotten. */
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
