import { ConfigError } from '../../errors.ts';
import type {
  InboxPage,
  InboxQuery,
  InboxRecord,
  LeaseDueRequest,
  LeaseDueResult,
  LeasedEvent,
  StoreInbox,
} from '../contract.ts';
import { claimRecord } from './claim.ts';
import { freeTask, parkedUntil } from './park.ts';
import type { RecordRow, Rows } from './rows.ts';

/** One atomic step of a backend, on its clock. */
type Atomic = <T>(step: (rows: Rows, now: number) => T) => Promise<T>;

/** `Store.inbox` of a backend that brings the rows. */
export function inboxOf(atomic: Atomic): StoreInbox {
  return {
    lease: (request) => atomic((rows, now) => leaseDue(rows, request, now)),
    list: (query) => atomic((rows, now) => list(rows, query, now)),
    inspect: (sender, key) => atomic((rows, now) => inspect(rows, sender, key, now)),
    redrive: (sender, key) => atomic((rows, now) => redrive(rows, sender, key, now)),
    discard: (sender, key, retentionMs) =>
      atomic((rows, now) => discard(rows, { sender, key, retentionMs }, now)),
  };
}

/** Candidates that one call looks at: bounds how long a synchronous backend keeps its process. */
const LOOK_MOST = 256;

/** Longest page. */
const PAGE_MOST = 1000;

/**
 * `StoreInbox.lease`. Each record that is looked at leaves the due ones, leased, ended or parked, so that no sender
 * can keep workers busy with events that cannot run.
 */
function leaseDue(rows: Rows, request: LeaseDueRequest, now: number): LeaseDueResult {
  const events: LeasedEvent[] = [];
  const died: { sender: string; key: string }[] = [];
  for (let looked = 0; looked < LOOK_MOST && events.length < request.max; looked += 1) {
    const found = rows.due(now);
    if (!found) break;
    const claimed = claimRecord(rows, found, request, now, () => ({}));
    if (claimed.kind === 'won') events.push(leasedEvent(rows, claimed.record, request.owner));
    if (claimed.kind === 'died') died.push({ sender: found.sender, key: found.key });
    if (claimed.kind === 'busy') {
      rows.updateRecord({ ...found, parkedUntil: parkedUntil(claimed.holder, now) });
    }
  }
  const next = rows.nextDue();
  return { events, died, ...(next !== undefined && { nextDueMs: Math.max(0, next - now) }) };
}

function leasedEvent(rows: Rows, record: RecordRow, owner: string): LeasedEvent {
  const { sender, key, fence, attempts, reemission, afterTerminal, afterFinal, ahead } = record;
  return {
    sender,
    key,
    lease: { owner, fence, attempt: attempts },
    body: rows.body(sender, key),
    reemission,
    afterTerminal,
    afterFinal,
    ahead,
  };
}

/** `StoreInbox.list`. @throws ConfigError for an `after` that no page gave. */
function list(rows: Rows, query: InboxQuery, now: number): InboxPage {
  if (query.after !== undefined && !/^[0-9]{1,16}$/.test(query.after)) {
    throw new ConfigError('inbox.list: after is not the next of a page before.');
  }
  const limit = Math.min(Math.max(1, Math.floor(query.limit)), PAGE_MOST);
  const page = rows.page({ ...query, limit }, now);
  return { records: page.rows.map(seen), ...(page.next !== undefined && { next: page.next }) };
}

/** `StoreInbox.inspect`. */
function inspect(rows: Rows, sender: string, key: string, now: number): InboxRecord | undefined {
  const record = rows.record(sender, key, now);
  if (!record) return undefined;
  const kept = record.state !== 'applied' && record.state !== 'stale';
  return { ...seen(record), ...(kept && { body: rows.body(sender, key) }) };
}

function seen(record: RecordRow): InboxRecord {
  const { sender, key, state, acked, attempts, crashes, insertedAt, notBefore, leaseUntil } = record;
  return {
    sender,
    key,
    state,
    acked,
    attempts,
    crashes,
    insertedAt,
    notBefore,
    leaseUntil,
    bodyBytes: record.bodyBytes,
    ...(record.task && { taskId: record.task.id }),
    ...(record.lastError !== null && { lastError: record.lastError }),
  };
}

/** `StoreInbox.redrive`. */
function redrive(rows: Rows, sender: string, key: string, now: number): 'queued' | 'absent' | 'other' {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead') return 'other';
  rows.updateRecord({ ...record, state: 'queued', owner: null, attempts: 0, crashes: 0, notBefore: now });
  return 'queued';
}

/** `StoreInbox.discard`. */
function discard(
  rows: Rows,
  of: { readonly sender: string; readonly key: string; readonly retentionMs: number },
  now: number,
): 'discarded' | 'absent' | 'other' {
  const record = rows.record(of.sender, of.key, now);
  if (!record) return 'absent';
  if (record.state !== 'dead' && record.state !== 'queued') return 'other';
  const expiresAt = now + of.retentionMs;
  const ended = {
    state: 'stale',
    owner: null,
    acked: true,
    bodyBytes: 0,
    parkedUntil: 0,
    expiresAt,
  } as const;
  rows.updateRecord({ ...record, ...ended });
  freeTask(rows, record);
  return 'discarded';
}
