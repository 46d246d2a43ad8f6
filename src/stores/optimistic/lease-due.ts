// Leases due events to a worker for every backend but memory and SQLite (admission.md §4.12, §8.15).
// Called by optimistic-store.ts as `StoreInbox.lease`; each record is decided by `leaseOne` of the rules.
import type { Backend, DueRequest, DueResult } from '../backend.ts';
import type { LeasedEvent, LeaseDueRequest, LeaseDueResult } from '../store.ts';
import { isExcepted, leasedEvent, leaseOne, type Looked, type RecordName } from '../rules/claim.ts';
import { requireLength } from '../rules/lease-rules.ts';
import { isLive } from '../rules/order.ts';
import { dueAt, isDue } from '../rules/task-wait.ts';
import { FAR_WAIT_MS } from '../constants.ts';
import type { RecordRow, Rows } from '../rules/rule-rows.ts';
import { foundGroups, queuedPlan, type Plan, READING } from './plan.ts';
import { type Known, runJobs, type Shared } from './batch-commit.ts';
import { idOf, nameOf } from './row-data.ts';

/**
 * The most candidates of one call of `lease`, and the time for which they are reserved for it (admission.md §8.15).
 * Ms: 1 s.
 */
const LOOK_MOST = 256;
const HOLD_MS = 1000;

/**
 * The sender whose event was examined last. The next call begins with the sender that follows, so that each has its
 * turn.
 */
export interface SenderTurn {
  last: string;
}

/**
 * Leases events for `StoreInbox.lease`. It reserves due rows for a moment so that other workers skip them. It plans
 * each, and leases those whose plans commit. If many cannot run, it queries again: those that cannot run are no
 * longer due.
 *
 * @throws ConfigError for a `leaseMs` that is not a length of time.
 */
export async function leaseDue(
  backend: Backend,
  shared: Shared,
  request: LeaseDueRequest,
  turn: SenderTurn,
): Promise<LeaseDueResult> {
  requireLength('leaseMs', request.leaseMs);
  const asked: Asked = { ...request, max: request.alone ? 1 : request.max, since: performance.now() };
  const taken: Taken = { events: [], died: [], stale: [], nextDueMs: undefined, suspectDue: false };
  for (let looked = 0; looked < LOOK_MOST && taken.events.length < asked.max;) {
    const max = Math.min(asked.max - taken.events.length, LOOK_MOST - looked);
    // If the store's clock is set back between two queries, the events leased by the first are due again.
    const except = [...(asked.except ?? []), ...taken.events];
    const found = await look(backend, shared, { ...asked, max, except }, turn, taken);
    if (found === 0) break;
    looked += found;
  }
  if (!request.alone) lookAgainFor(taken, request.leaseMs);
  return shared.clock.told(resultOf(taken));
}

/**
 * Queries due rows once and leases them.
 *
 * @returns the number of rows that it planned; 0 if no more are due now.
 */
async function look(
  backend: Backend,
  shared: Shared,
  asked: Asked,
  turn: SenderTurn,
  taken: Taken,
): Promise<number> {
  const { max, senders, alone: suspects = false } = asked;
  const since = performance.now();
  const wanted = { suspects, max, holdMs: HOLD_MS, longestMs: FAR_WAIT_MS, senders, after: turn.last };
  const found = await dueRows(backend, wanted, hasSome(taken));
  if (!found) return 0;
  shared.clock.seen(found.now, since);
  taken.nextDueMs = found.nextDueMs;
  taken.suspectDue = found.isSuspectDue;
  const last = found.due.at(-1);
  if (!last) return 0;
  if (!suspects) turn.last = last.scope.sender;
  const { came, faults } = await leaseFound({ result: found, since }, backend, shared, asked);
  for (const one of came) take(one, taken);
  if (faults.length === 0) return found.due.length;
  if (!hasSome(taken)) throw faults[0];
  return 0;
}

/** The results of all queries of one call. */
interface Taken {
  readonly events: LeasedEvent[];
  readonly died: RecordName[];
  readonly stale: RecordName[];
  /** As the last query returned it. */
  nextDueMs: number | undefined;
  suspectDue: boolean;
}

/** Lowers `nextDueMs` to the length of the new leases: their events may be due again when these end. */
function lookAgainFor(taken: Taken, leaseMs: number): void {
  if (taken.events.length > 0) taken.nextDueMs = Math.min(taken.nextDueMs ?? Infinity, leaseMs);
}

const hasSome = ({ events, died }: Taken): boolean => events.length + died.length > 0;

function take({ event, dead, stale, isSuspected }: Looked, taken: Taken): void {
  if (event) taken.events.push(event);
  if (dead) taken.died.push(dead);
  if (stale) taken.stale.push(stale);
  if (isSuspected) taken.suspectDue = true;
}

function resultOf({ events, died, stale, nextDueMs, suspectDue }: Taken): LeaseDueResult {
  return {
    events,
    died,
    ...(stale.length > 0 && { stale }),
    ...(nextDueMs !== undefined && { nextDueMs }),
    ...(suspectDue && { suspectDue }),
  };
}

/** A worker's request, and the time at which its call began, by `performance.now()`. */
type Asked = LeaseDueRequest & { readonly since: number };

/** Returns undefined if a query fails after events were leased: these are kept. Otherwise rejects. */
async function dueRows(
  backend: Backend,
  request: DueRequest,
  hasSome: boolean,
): Promise<DueResult | undefined> {
  try {
    return await backend.due(request);
  } catch (error) {
    if (hasSome) return undefined;
    throw error;
  }
}

interface FoundDue extends Known {
  readonly result: DueResult;
}

interface LeaseFound {
  readonly came: readonly Looked[];
  /** Errors of rows that could not be leased: these rows stay due. */
  readonly faults: readonly unknown[];
}

async function leaseFound(
  known: FoundDue,
  backend: Backend,
  shared: Shared,
  request: Asked,
): Promise<LeaseFound> {
  const { result: found, since } = known;
  const groups = foundGroups(found.rows, backend);
  const records = new Map(found.rows.map((row) => [nameOf(row), row]));
  const came: Promise<Looked>[] = [];
  const faults: unknown[] = [];
  for (const id of found.due) {
    const row = records.get(nameOf(id));
    if (!row) continue;
    const { sender } = row.scope;
    const name = { sender, key: idOf(row) };
    came.push(
      new Promise((resolve) => {
        const plan: Plan<Looked> = (rows, now) => leaseFoundRecord(rows, name, request, now);
        const job = queuedPlan(plan, READING, resolve, (error) => {
          faults.push(error);
          resolve({});
        });
        groups.get(backend.bySender ? sender : '')?.requests.push(job);
      }),
    );
  }
  const running = [...groups.values()].map(({ requests, rows }) =>
    runJobs(requests, backend, shared, { result: { ...found, rows }, since }),
  );
  await Promise.all(running);
  return { came: await Promise.all(came), faults };
}

/**
 * Applies `leaseOne` to a record that was due when it was found. If this very call has leased it and the reply was
 * lost, the lease is returned again.
 */
function leaseFoundRecord(rows: Rows, { sender, key }: RecordName, request: Asked, now: number): Looked {
  const found = rows.record(sender, key, now);
  if (!found || isExcepted(request, found)) return {};
  if (found.owner === request.owner && isLive(found, now)) {
    return { event: leasedEvent(rows, found, request.owner, now) };
  }
  const at = dueAt(found);
  const mayRun = at !== null && isDue(at, now) && found.suspect === (request.alone ?? false);
  return mayRun && !isAway(request, found) ? leaseOne(rows, found, request, now) : {};
}

/**
 * True if the call itself took longer than a lease, because the store was unreachable. Leases and rows of processes
 * may have run out only because they could not be renewed. Their owners get time to renew them.
 */
function isAway({ since, leaseMs }: Asked, { state }: RecordRow): boolean {
  return state === 'leased' && performance.now() - since > leaseMs;
}
