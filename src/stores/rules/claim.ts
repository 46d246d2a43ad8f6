// Leases records to deliveries and workers, and counts crashes (admission.md §4.3 to §4.9). Makes `Store.inbox`, with
// the operations of operators.
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

/** The caller that asks for a lease of a record: an accept in mode inline, or a worker. */
interface Claimant extends Lessee {
  readonly retry: RetryLimits;
  /** True if the process has reserved its one slot for suspects (events whose run ended by a crash). They run alone. */
  readonly takesSuspects: boolean;
  /**
   * True for a record that the caller's process still runs: that record holds its task even if its lease has expired.
   */
  readonly runsHere?: (record: RecordRow) => boolean;
}

/**
 * The result of a request for a lease; `record` is the record as it was written. `suspect`: not leased, because the
 * caller lacks `takesSuspects` or the record's wait (`putOffMs`) is not over. `busy`: nothing was written, because
 * `holder` holds the task.
 */
type Claimed =
  | { readonly kind: 'won' | 'died' | 'stale' | 'suspect'; readonly record: RecordRow }
  | { readonly kind: 'busy'; readonly record: RecordRow; readonly holder: RecordRow };

/**
 * Leases a record that is QUEUED or whose lease has expired, or ends it if it must not run. Called for rule 2 of
 * `Store.accept` and for `StoreInbox.lease`.
 *
 * @param note returns members to add to the written record: an accept saves its answer in them.
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

/** Takes back the crash that was charged to a record last, if the process of that crash turns out to be alive. */
function takenBack(rows: Rows, found: RecordRow, now: number): RecordRow {
  if (found.crashedIn === null || !rows.isProcessAlive(found.crashedIn, now)) return found;
  return { ...found, crashes: found.crashes - 1, crashedIn: null };
}

/**
 * Queues a record whose lease has expired, and records how the lease ended (admission.md §4.4).
 *
 * - The caller itself owned the lease: the answer with the lease was lost, and no handler ran. The attempt is given
 *   back.
 * - The lease's process is alive: it could not reach the store, or stood still. The attempt stays counted.
 * - Otherwise the process crashed, perhaps by another event that ran there. The attempt is given back, and the record
 *   becomes a suspect. A record that was a suspect already ran alone: the crash is charged to it, and it has to wait.
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
 * Leaves a suspect queued, because this caller must not lease it now. Once its wait (`putOffMs`) is over, it is due for
 * callers with `takesSuspects`. If a crash was charged to the suspect, its task is free meanwhile.
 */
function putAside(rows: Rows, suspect: RecordRow, now: number): Claimed {
  const record = { ...suspect, parkedUntil: 0 };
  rows.updateRecord(record);
  if (record.crashes > 0) freeTask(rows, record, now);
  return { kind: 'suspect', record };
}

/**
 * True if no attempts or no crashes are left. A lease counts an attempt, and a crash gives the attempt back. So an
 * event that crashes its process is limited by `crashes`, not by `attempts`.
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
  // This record may have been woken because its task became free, and now it does not run. So the next record that
  // waits for the task is woken.
  freeTask(rows, record, now);
  return { kind: ended.state === 'dead' ? 'died' : 'stale', record };
}

/**
 * Leases the record, and makes it the holder of its task. `ahead` and `afterTerminal` are computed again, because time
 * has passed since the record was inserted.
 */
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

/** Runs a function in one atomic step of a store, with the store's rows and current time. */
type Atomic = <T>(step: (rows: QueueRows, now: number) => T) => Promise<T>;

/** Makes `Store.inbox` for a store: `atomic` gives access to its rows. */
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

/** The largest number of due records that one `lease` examines, so that a synchronous store does not block for long. */
const LOOK_MOST = 256;

/** The largest number of records on a page of `StoreInbox.list`. */
const PAGE_MOST = 1000;

type DeadEvent = LeaseDueResult['died'][number];

/** The result for one due record that a call of `lease` examined. If no member is set, the record has to wait. */
export interface Looked {
  readonly event?: LeasedEvent;
  readonly dead?: DeadEvent;
  readonly stale?: DeadEvent;
  /** True if the record has just become a suspect (an event whose run ended by a crash), and may be leased now. */
  readonly isSuspected?: true;
}

/**
 * Leases one due record for `StoreInbox.lease`. Afterwards `QueueRows.due` skips the record: it is leased, ended, a
 * suspect, or waits for its task. So no sender can keep workers busy with events that cannot run.
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
    // A record also counts as due if `notBefore` is impossibly far ahead (admission.md §4.11). Such a record gets the
    // current time instead, so that it is not due for that reason again.
    const notBefore = Math.min(claimed.record.notBefore, now);
    rows.updateRecord({ ...claimed.record, notBefore, parkedUntil: parkedUntil(claimed.holder, now) });
  }
  return {};
}

/** True if the caller's process already runs the record, as `except` of its request says. */
export function isExcepted({ except = [] }: LeaseDueRequest, { sender, key }: RecordName): boolean {
  return except.some((one) => one.key === key && one.sender === sender);
}

/** The events that one call of `lease` leased, and the events that it ended without a run. */
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
      // The caller's process runs this record, so the search skips it: a record that is not acknowledged is never due.
      // The record is restored below, in the same step.
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

/** Computes `StoreInbox.overdueMs`: the ms for which the earliest due record has been due; undefined if none is due. */
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

function list(rows: QueueRows, query: InboxQuery, now: number): InboxPage {
  const page = rows.page(checkedQuery(query), now);
  return { records: page.rows.map(seen), ...(page.next !== undefined && { next: page.next }) };
}

/**
 * Checks a query for `StoreInbox.list`, and limits the number of records.
 *
 * @throws ConfigError for an `after` that is not the `next` of an earlier page.
 */
export function checkedQuery(query: InboxQuery): InboxQuery {
  if (query.after !== undefined && !/^[0-9]{1,16}$/.test(query.after)) {
    throw new ConfigError(
      "after: is not the next of an earlier page. Give that page's next, or leave it out.",
    );
  }
  return { ...query, limit: Math.min(Math.max(1, Math.floor(query.limit)), PAGE_MOST) };
}

/** The name of a record: its sender and its idempotency key. */
export interface RecordName {
  readonly sender: string;
  readonly key: string;
}

/** Shows one record for `StoreInbox.inspect`, with its body unless the record is DONE. */
export function inspect(rows: Rows, { sender, key }: RecordName, now: number): InboxRecord | undefined {
  const record = rows.record(sender, key, now);
  if (!record) return undefined;
  const kept = record.state !== 'applied' && record.state !== 'stale';
  return { ...seen(record), ...(kept && { body: rows.body(sender, key) }) };
}

/** Makes the view of a record that operators get. */
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

/** False for an event that names only an operation: `id` is then the id of the operation's row. */
const namesTask = ({ id, told }: TaskClaim): boolean => !(told && isOperationRow(id));

/** Queues a DEAD record again (`StoreInbox.redrive`), no longer a suspect, with attempts and crashes 0. */
export function redrive(rows: Rows, { sender, key }: RecordName, now: number): 'queued' | 'absent' | 'other' {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead') return 'other';
  const anew = { attempts: 0, crashes: 0, suspect: false, crashedIn: null } as const;
  rows.updateRecord({ ...record, ...anew, state: 'queued', owner: null, notBefore: now });
  return 'queued';
}

/** Ends a QUEUED or DEAD record without a run (`StoreInbox.discard`): it becomes DONE(stale), its task is freed. */
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
