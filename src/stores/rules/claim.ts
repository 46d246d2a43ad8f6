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

/** Who wants to run a record that nobody holds: an accept in inline mode, or a worker. */
interface Claimant extends Lessee {
  readonly retry: RetryLimits;
  /** It runs a suspect apart from others: its process has kept its one place for it. */
  readonly takesSuspects: boolean;
  /** Whether its process runs this record, perhaps on a lease that has run out: then the task is held. */
  readonly runsHere?: (record: RecordRow) => boolean;
}

/**
 * What came of it; `record` is what was written. `suspect`: it is one, and waits for who takes suspects, or for `putOffMs`. `busy`: nothing
 * was written, for `holder` has the task.
 */
type Claimed =
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

/** A crash that was charged, and was none: the process is heard again. */
function takenBack(rows: Rows, found: RecordRow, now: number): RecordRow {
  if (found.crashedIn === null || !rows.isProcessAlive(found.crashedIn, now)) return found;
  return { ...found, crashes: found.crashes - 1, crashedIn: null };
}

/**
 * A lease that ran out. The claimant's own: it asks again because it was not told, so no handler ran. Of a process that
 * lives: the store was away, or the process was; the attempt stays counted. Else a crash, by whichever of the events that
 * ran there: the attempt is given back, and the record becomes a suspect; one that was a suspect ran alone, is charged, and has to wait.
 * The owner goes: the accept that won is not to find it its own. It is due since its lease ran out.
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

/** Due when it is put off no longer, for who takes suspects. Where it was charged, its task is free for others meanwhile. */
function putAside(rows: Rows, suspect: RecordRow, now: number): Claimed {
  const record = { ...suspect, parkedUntil: 0 };
  rows.updateRecord(record);
  if (record.crashes > 0) freeTask(rows, record, now);
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
  const place = { ahead: isAhead(record.task, now), afterTerminal: followsEnd(rows, record, task, now) };
  return { ...leased(record, claimant, now), ...place };
}

/** One atomic step of a backend, on its clock. */
type Atomic = <T>(step: (rows: QueueRows, now: number) => T) => Promise<T>;

/** `Store.inbox` of a backend that brings the rows. */
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

/** Candidates that one call looks at: bounds how long a synchronous backend keeps its process. */
const LOOK_MOST = 256;

/** Longest page. */
const PAGE_MOST = 1000;

type DeadEvent = LeaseDueResult['died'][number];

/** What came of a record that a worker looked at; nothing: it has to wait, or has come to its end without a run. */
export interface Looked {
  readonly event?: LeasedEvent;
  readonly dead?: DeadEvent;
  readonly stale?: DeadEvent;
  /** It has become a suspect, and is due. */
  readonly isSuspected?: true;
}

/**
 * `StoreInbox.lease`, for one record that is due. It leaves the due ones, leased, ended or parked, so that no sender
 * can keep workers busy with events that cannot run.
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
    // One that was due because its time is too far ahead is not due again for that.
    const notBefore = Math.min(claimed.record.notBefore, now);
    rows.updateRecord({ ...claimed.record, notBefore, parkedUntil: parkedUntil(claimed.holder, now) });
  }
  return {};
}

/** Whether the caller's process runs it already. */
export function isExcepted({ except = [] }: LeaseDueRequest, { sender, key }: RecordName): boolean {
  return except.some((one) => one.key === key && one.sender === sender);
}

/** What was leased, and what the look has ended. */
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
      // Out of the search's way, in this step alone.
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

/** `StoreInbox.overdueMs`. */
function overdueMs(rows: QueueRows, now: number): number | undefined {
  const first = Math.min(rows.nextDue() ?? Infinity, rows.nextSuspect() ?? Infinity);
  return first <= now ? now - first : undefined;
}

/** A leased record, for who runs it. */
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

/** `StoreInbox.list`. @throws ConfigError for an `after` that no page gave. */
function list(rows: QueueRows, query: InboxQuery, now: number): InboxPage {
  const page = rows.page(checkedQuery(query), now);
  return { records: page.rows.map(seen), ...(page.next !== undefined && { next: page.next }) };
}

/** @throws ConfigError for an `after` that no page gave. */
export function checkedQuery(query: InboxQuery): InboxQuery {
  if (query.after !== undefined && !/^[0-9]{1,16}$/.test(query.after)) {
    throw new ConfigError(
      "after: is not the next of an earlier page. Give that page's next, or leave it out.",
    );
  }
  return { ...query, limit: Math.min(Math.max(1, Math.floor(query.limit)), PAGE_MOST) };
}

/** Which record an operator means. */
export interface RecordName {
  readonly sender: string;
  readonly key: string;
}

/** `StoreInbox.inspect`. */
export function inspect(rows: Rows, { sender, key }: RecordName, now: number): InboxRecord | undefined {
  const record = rows.record(sender, key, now);
  if (!record) return undefined;
  const kept = record.state !== 'applied' && record.state !== 'stale';
  return { ...seen(record), ...(kept && { body: rows.body(sender, key) }) };
}

/** A record as its owner sees it. */
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

/** Not an event that names its operation alone. */
const namesTask = ({ id, told }: TaskClaim): boolean => !(told && isOperationRow(id));

/** `StoreInbox.redrive`. */
export function redrive(rows: Rows, { sender, key }: RecordName, now: number): 'queued' | 'absent' | 'other' {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead') return 'other';
  const anew = { attempts: 0, crashes: 0, suspect: false, crashedIn: null } as const;
  rows.updateRecord({ ...record, ...anew, state: 'queued', owner: null, notBefore: now });
  return 'queued';
}

/** `StoreInbox.discard`. */
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
