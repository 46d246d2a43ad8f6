// Leases records to accepts and workers: claims, crashes and suspects (admission.md §4.3 to §4.9); the operator's
// calls.
// Called by memory, SQLite and the optimistic store inside one atomic step, with the current time passed in.
import { ConfigError } from '../../shared/errors.ts';
import { isOperationRow } from '../constants.ts';
import type {
  InboxPage,
  InboxQuery,
  InboxRecord,
  LeasedEvent,
  LeaseDueRequest,
  LeaseDueResult,
  RetryLimits,
  StoreInbox,
  TaskClaim,
} from '../store.ts';
import { type StepWatch, stepWatch } from '../step-watch.ts';
import { attemptsBefore, leased, leaseOf, type Lessee, requireLength } from './lease-rules.ts';
import { holderOf, isAhead, isLive, isStale, markExpiry, taskRow } from './order.ts';
import { freeTask, leftMs, parkedUntil, putOffMs, putOffUntil, seenLease, shortened } from './task-wait.ts';
import type { QueueRows, RecordRow, Rows, TaskRow } from './rule-rows.ts';
import { followsEnd, isPastEnd } from './terminal.ts';
import { isTold, orderedBy } from './channels.ts';

/** An accept in inline mode, or a worker, that wants to run a record without a live lease. */
interface Claimant extends Lessee {
  readonly retry: RetryLimits;
  /**
   * True if the claimant's process has reserved its one slot for suspects. A suspect is an event whose run ended by a
   * crash. It runs apart from other events.
   */
  readonly takesSuspects: boolean;
  /**
   * True for a record that the caller's process still runs, even if its lease has run out: it still holds its task.
   */
  readonly runsHere?: (record: RecordRow) => boolean;
}

/**
 * The result of a claim; `record` is the record as it was written. `suspect`: not leased. Only a claimant with
 * `takesSuspects` may lease it, after `putOffMs`. `busy`: nothing was written, because `holder` holds the task.
 */
type Claimed =
  | { readonly kind: 'won' | 'died' | 'stale' | 'suspect'; readonly record: RecordRow }
  | { readonly kind: 'busy'; readonly record: RecordRow; readonly holder: RecordRow };

/**
 * Claims a record that is QUEUED or whose lease is over, for rule 2 of `Store.accept` and for `StoreInbox.lease`.
 *
 * @param note returns members that the caller adds to the record as it is written: an accept saves its answer.
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
  const holder = holderOf(rows, task, now, { key: record.key, runsHere: claimant.runsHere });
  if (holder) return { kind: 'busy', record, holder: seenLease(rows, holder, now) };
  if (
    isStale(orderedBy(record, task), task) ||
    isTold(record.task, task) ||
    isPastEnd(rows, record, task, now)
  ) {
    const expiresAt = now + claimant.retentionMs;
    return end(
      rows,
      { ...record, state: 'stale', bodyBytes: 0, url: undefined, expiresAt },
      note('stale'),
      now,
    );
  }
  if (record.suspect && (!claimant.takesSuspects || putOffMs(record, now) > 0)) {
    return putAside(rows, record, now);
  }
  const won = { ...take(rows, record, claimant, now, task), ...note('won') };
  rows.updateRecord(won);
  return { kind: 'won', record: won };
}

/** Takes back the last charged crash if its process is alive after all: then it had not crashed. */
function takenBack(rows: Rows, found: RecordRow, now: number): RecordRow {
  if (found.crashedIn === null || !rows.isProcessAlive(found.crashedIn, now)) return found;
  return { ...found, crashes: found.crashes - 1, crashedIn: null };
}

/**
 * Queues a record whose lease ran out, and records how the lease ended (admission.md §4.4).
 *
 * - The claimant owned it: its reply was lost, and no handler ran. The attempt is given back.
 * - Its process lives: the store could not be reached, or the process stood still. The attempt stays counted.
 * - Else its process crashed, by any of the events that ran there. The attempt is given back, and the record becomes
 *   a suspect. A record that was a suspect already ran alone: it is charged, and has to wait.
 *
 * The owner is cleared, so that a repeated accept does not take the old lease for its own. The record counts as due
 * since the end of its lease.
 */
function lapsed(rows: Rows, found: RecordRow, claimant: Claimant, now: number): RecordRow {
  const { process, suspect, crashes } = found;
  const since = Math.max(found.notBefore, found.leaseUntil);
  const queued = { ...found, state: 'queued', owner: null, notBefore: since } as const;
  const before = attemptsBefore(found);
  if (found.owner === claimant.owner) return { ...queued, attempts: before };
  if (process !== null && (process === claimant.process || rows.isProcessAlive(process, now))) return queued;
  const crashed = { ...queued, attempts: before, suspect: true };
  if (!suspect) return crashed;
  const charged = crashes + 1;
  const notBefore = putOffUntil(found, charged, now);
  return { ...crashed, crashes: charged, crashedIn: process, notBefore };
}

/**
 * Leaves a suspect queued. After its wait, claimants that take suspects may lease it. If it was charged, its task is
 * free meanwhile.
 */
function putAside(rows: Rows, suspect: RecordRow, now: number): Claimed {
  const record = { ...suspect, parkedUntil: 0 };
  rows.updateRecord(record);
  if (record.crashes > 0) freeTask(rows, record, now);
  return { kind: 'suspect', record };
}

/**
 * True if attempts or crashes are used up. A lease counts an attempt, and a crash gives it back. So an event that
 * ends its process is bounded by `crashes`, not by `attempts`.
 */
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
  // This record may be the one that was woken for its free task. Then the next one that waits is woken instead.
  freeTask(rows, record, now);
  return { kind: ended.state === 'dead' ? 'died' : 'stale', record };
}

/** Leases the record, and makes it the holder of its task. `ahead` and `afterTerminal` are computed again. */
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
  const place = { ahead: isAhead(record.task, now), afterTerminal: followsEnd(rows, record, task, now) };
  return { ...leased(record, claimant, now), ...place };
}

/** Runs one atomic step of a backend, with the backend's current time. */
type Atomic = <T>(step: (rows: QueueRows, now: number) => T) => Promise<T>;

/** Makes `Store.inbox` for a backend that supplies the rows. */
export function inboxOf(atomic: Atomic, watch: StepWatch = stepWatch()): StoreInbox {
  return {
    lease: (request) =>
      atomic((rows, now) => {
        requireLength('leaseMs', request.leaseMs);
        return watch.told(leaseDue(rows, request, now));
      }),
    list: (query) => atomic((rows, now) => list(rows, query, now)),
    counts: () => atomic((rows, now) => rows.counts(now)),
    inspect: (sender, key) => atomic((rows, now) => inspect(rows, { sender, key }, now)),
    redrive: (sender, key) => atomic((rows, now) => redrive(rows, { sender, key }, now)),
    discard: (sender, key, retentionMs, only) =>
      atomic((rows, now) => discard(rows, { sender, key, retentionMs, only }, now)),
    overdueMs: () => atomic((rows, now) => overdueMs(rows, now)),
  };
}

/** The most candidates that one call examines: it bounds how long a synchronous backend blocks its process. */
const LOOK_MOST = 256;

/** The longest page. */
const PAGE_MOST = 1000;

type DeadEvent = LeaseDueResult['died'][number];

/** The result for a record that a worker examined. If no member is set, the record has to wait. */
export interface Looked {
  readonly event?: LeasedEvent;
  readonly dead?: DeadEvent;
  readonly stale?: DeadEvent;
  /** True if it has just become a suspect, and is due. */
  readonly isSuspected?: true;
}

/**
 * Leases one due record for `StoreInbox.lease`. Afterwards the record is not due: it is leased, ended, or waits for
 * its task. So no sender can keep workers busy with events that cannot run.
 */
export function leaseOne(rows: Rows, found: RecordRow, request: LeaseDueRequest, now: number): Looked {
  if (isLive(found, now)) {
    rows.updateRecord(shortened(found, now));
    return {};
  }
  const runsHere = (record: RecordRow): boolean => isExcepted(request, record);
  const claimant = { ...request, takesSuspects: request.alone === true, runsHere };
  const claimed = claimRecord(rows, found, claimant, now, () => ({}));
  if (claimed.kind === 'won') return { event: leasedEvent(rows, claimed.record, request.owner, now) };
  if (claimed.kind === 'died') return { dead: { sender: found.sender, key: found.key } };
  if (claimed.kind === 'stale') return { stale: { sender: found.sender, key: found.key } };
  if (claimed.kind === 'suspect') return putOffMs(claimed.record, now) > 0 ? {} : { isSuspected: true };
  if (claimed.kind === 'busy') {
    // A record may be due only because its time is impossibly far ahead (§4.11). It gets the current time instead, so
    // that it is not due for that reason again.
    const notBefore = Math.min(claimed.record.notBefore, now);
    rows.updateRecord({ ...claimed.record, notBefore, parkedUntil: parkedUntil(claimed.holder, now) });
  }
  return {};
}

/** True if the caller's process already runs the record. */
export function isExcepted({ except = [] }: LeaseDueRequest, { sender, key }: RecordName): boolean {
  return except.some((one) => one.key === key && one.sender === sender);
}

/** The events that were leased, and those that the call ended without a run. */
interface Taken {
  readonly events: LeasedEvent[];
  readonly died: DeadEvent[];
  readonly stale: DeadEvent[];
}

function addTo(taken: Taken, { event, dead, stale }: Looked): void {
  if (event) taken.events.push(event);
  if (dead) taken.died.push(dead);
  if (stale) taken.stale.push(stale);
}

function leaseDue(rows: QueueRows, request: LeaseDueRequest, now: number): LeaseDueResult {
  const events: LeasedEvent[] = [];
  const died: DeadEvent[] = [];
  const stale: DeadEvent[] = [];
  const excepted: RecordRow[] = [];
  const max = request.alone ? 1 : request.max;
  for (let count = 0; count < LOOK_MOST && events.length < max; count += 1) {
    const found = request.alone ? rows.dueSuspect(now) : rows.due(now);
    if (!found) break;
    if (isExcepted(request, found)) {
      // Rows that are not acknowledged are never due, so this one is skipped. It is restored below, in the same step.
      rows.updateRecord({ ...found, acked: false });
      excepted.push(found);
      continue;
    }
    addTo({ events, died, stale }, leaseOne(rows, found, request, now));
  }
  const next = request.alone ? undefined : rows.nextDue();
  for (const row of excepted) rows.updateRecord(row);
  return {
    events,
    died,
    ...(stale.length > 0 && { stale }),
    ...(next !== undefined && { nextDueMs: leftMs(next, now) }),
    ...(rows.dueSuspect(now) && { suspectDue: true }),
  };
}

/** Computes `StoreInbox.overdueMs`: how long the earliest record has been due, in ms; undefined if none is due. */
function overdueMs(rows: QueueRows, now: number): number | undefined {
  const first = Math.min(rows.nextDue() ?? Infinity, rows.nextSuspect() ?? Infinity);
  return first <= now ? now - first : undefined;
}

/** Makes the event that a worker gets from a record that it has leased. */
export function leasedEvent(rows: Rows, record: RecordRow, owner: string, now: number): LeasedEvent {
  const { sender, key, traceparent, url, reemission, afterTerminal, afterFinal, ahead } = record;
  const { windows, claimedState } = record;
  const source = record.task?.told?.source;
  return {
    sender,
    key,
    lease: leaseOf(record, owner),
    waitedMs: Math.max(0, now - record.insertedAt),
    ...(traceparent !== undefined && { traceparent }),
    ...(url !== undefined && { url }),
    ...(source !== undefined && { source }),
    body: rows.body(sender, key),
    reemission,
    afterTerminal,
    afterFinal,
    ...(windows && { windows }),
    ...(claimedState && { claimedState }),
    ahead,
  };
}

/**
 * Lists records for `StoreInbox.list`.
 *
 * @throws ConfigError for an `after` that no page gave.
 */
function list(rows: QueueRows, query: InboxQuery, now: number): InboxPage {
  const page = rows.page(checkedQuery(query), now);
  return { records: page.rows.map(seen), ...(page.next !== undefined && { next: page.next }) };
}

/**
 * Checks a query and bounds its limit.
 *
 * @throws ConfigError for an `after` that no page gave.
 */
export function checkedQuery(query: InboxQuery): InboxQuery {
  if (query.after !== undefined && !/^[0-9]{1,16}$/.test(query.after)) {
    throw new ConfigError(
      "after: is not the next of an earlier page. Give that page's next, or leave it out.",
    );
  }
  return { ...query, limit: Math.min(Math.max(1, Math.floor(query.limit)), PAGE_MOST) };
}

/** The name of the record that an operator asks for. */
export interface RecordName {
  readonly sender: string;
  readonly key: string;
}

/** Shows one record for `StoreInbox.inspect`, with its body if it is kept. */
export function inspect(rows: Rows, { sender, key }: RecordName, now: number): InboxRecord | undefined {
  const record = rows.record(sender, key, now);
  if (!record) return undefined;
  const kept = record.state !== 'applied' && record.state !== 'stale';
  return { ...seen(record), ...(kept && { body: rows.body(sender, key) }) };
}

/** Makes the operator's view of a record. */
export function seen(record: RecordRow): InboxRecord {
  const { sender, key, state, acked, runs, attempts, crashes, insertedAt, notBefore, leaseUntil } = record;
  return {
    sender,
    key,
    state,
    acked,
    runs,
    attempts,
    crashes,
    insertedAt,
    notBefore,
    leaseUntil,
    ...(record.url !== undefined && { url: record.url }),
    bodyBytes: record.bodyBytes,
    ...(record.suspect && { suspect: true }),
    ...(record.task && namesTask(record.task) && { taskId: record.task.id }),
    ...(record.task?.told && { source: record.task.told.source }),
    ...(record.lastError !== null && { lastError: record.lastError }),
  };
}

/** False for an event whose task is only a row of its operation. */
const namesTask = ({ id, told }: TaskClaim): boolean => !(told && isOperationRow(id));

/** Queues a DEAD record again, for `StoreInbox.redrive`. Its attempts, crashes and suspicion are reset. */
export function redrive(rows: Rows, { sender, key }: RecordName, now: number): 'queued' | 'absent' | 'other' {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead') return 'other';
  const anew = { attempts: 0, crashes: 0, suspect: false, crashedIn: null } as const;
  rows.updateRecord({ ...record, ...anew, state: 'queued', owner: null, notBefore: now });
  return 'queued';
}

/** Ends a QUEUED or DEAD record without a run, for `StoreInbox.discard`: it becomes stale, and its task is freed. */
export function discard(
  rows: Rows,
  of: RecordName & { readonly retentionMs: number; readonly only: 'dead' | 'queued' | undefined },
  now: number,
): 'discarded' | 'absent' | 'other' {
  const record = rows.record(of.sender, of.key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead' && record.state !== 'queued') return 'other';
  if (of.only !== undefined && record.state !== of.only) return 'other';
  const expiresAt = now + of.retentionMs;
  const nobodys = { owner: null, suspect: false, acked: true, parkedUntil: 0 } as const;
  rows.updateRecord({ ...record, ...nobodys, state: 'stale', bodyBytes: 0, url: undefined, expiresAt });
  freeTask(rows, record, now);
  return 'discarded';
}
