// Leases due events to a worker for every backend but memory and SQLite (admission.md §4.12, §8.15).
// Called by optimistic-store.ts as `StoreInbox.lease`; `leaseOne` of the rules decides about each event.
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
 * The largest number of due events that one call of `lease` examines, and the time for which it reserves them
 * (admission.md §8.15). Ms: 1 s.
 */
const LOOK_MOST = 256;
const HOLD_MS = 1000;

/**
 * The sender whose event was examined last. The next call begins with the sender that follows by name, so that senders
 * take turns.
 */
export interface SenderTurn {
  last: string;
}

/**
 * Leases due events to a worker, for `StoreInbox.lease`. The found events are first reserved for a moment, so that
 * other workers skip them. Then a lease of each is planned and committed. Events that cannot run now are no longer due,
 * and further queries look for others in their place.
 *
 * @throws ConfigError for a `leaseMs` that is not above 0 and at most 10 min.
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
    // Events that this call has leased are excluded, because they are due again if the store's clock is set back
    // meanwhile.
    const except = [...(asked.except ?? []), ...taken.events];
    const found = await look(backend, shared, { ...asked, max, except }, turn, taken);
    if (found === 0) break;
    looked += found;
  }
  if (!request.alone) lookAgainFor(taken, request.leaseMs);
  return shared.clock.told(resultOf(taken));
}

/**
 * Queries due events once, and leases them.
 *
 * @returns the number of examined events. 0 ends the search: no more are due, or an error came after events were
 *   leased or became DEAD.
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
  const found = await dueRows(backend, wanted, taken);
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
  requireSome(taken, faults[0]);
  return 0;
}

/** The combined results of all queries of one call of `lease`. */
interface Taken {
  readonly events: LeasedEvent[];
  readonly died: RecordName[];
  readonly stale: RecordName[];
  /** The time until the next event comes due, as the last query returned it. */
  nextDueMs: number | undefined;
  suspectDue: boolean;
}

/**
 * Lowers `nextDueMs` to the length of the new leases, because the leased events may be due again when the leases end.
 */
function lookAgainFor(taken: Taken, leaseMs: number): void {
  if (taken.events.length > 0) taken.nextDueMs = Math.min(taken.nextDueMs ?? Infinity, leaseMs);
}

/** @throws the error, unless a query has leased or ended events: the caller must learn of these. */
function requireSome({ events, died, stale }: Taken, error: unknown): void {
  if ([...events, ...died, ...stale].length === 0) throw error;
}

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

/**
 * Queries due events. Returns undefined if the query fails after other events were leased or ended, so that the caller
 * still learns of these. Otherwise rejects with the error.
 */
async function dueRows(backend: Backend, request: DueRequest, taken: Taken): Promise<DueResult | undefined> {
  try {
    return await backend.due(request);
  } catch (error) {
    requireSome(taken, error);
    return undefined;
  }
}

interface FoundDue extends Known {
  readonly result: DueResult;
}

interface LeaseFound {
  readonly came: readonly Looked[];
  /** The errors of events that could not be leased. These events stay due. */
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
 * Leases a record (a stored event) that was due when it was queried. If this same call has already leased it, and only
 * the reply was lost, returns that lease again.
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
 * True if a lease that has run out must not be taken over, because the store was unreachable for longer than a lease.
 * The owner of the lease could not renew it either, and gets time to do so.
 */
function isAway({ since, leaseMs }: Asked, { state }: RecordRow): boolean {
  return state === 'leased' && performance.now() - since > leaseMs;
}
