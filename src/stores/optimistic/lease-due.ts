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

/** Candidates that one call of `lease` looks at, and how long others leave them alone meanwhile (admission.md §8.15). */
const LOOK_MOST = 256;
const HOLD_MS = 1000;

/** The sender whose event was looked at last: the next look begins behind it, so that each has its turn. */
export interface SenderTurn {
  last: string;
}

/**
 * `StoreInbox.lease`: rows that are due are taken off the others' way for a moment, planned one after the other, and
 * those whose plans hold are leased. Several rounds where many of them cannot run; each leaves the due ones.
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
    // A clock that is set back between two looks makes what the first one leased due again.
    const except = [...(asked.except ?? []), ...taken.events];
    const found = await look(backend, shared, { ...asked, max, except }, turn, taken);
    if (found === 0) break;
    looked += found;
  }
  if (!request.alone) lookAgainFor(taken, request.leaseMs);
  return shared.clock.told(resultOf(taken));
}

/** @returns how many rows it has planned; 0: there are no more to look for now. */
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

/** What the looks of one call have come to. */
interface Taken {
  readonly events: LeasedEvent[];
  readonly died: RecordName[];
  readonly stale: RecordName[];
  /** As the last look said. */
  nextDueMs: number | undefined;
  suspectDue: boolean;
}

/** What was leased is due again when its lease is over. */
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

/** A worker's request, and when the call began, on the clock of `performance.now()`. */
type Asked = LeaseDueRequest & { readonly since: number };

/** A later look that fails takes nothing from what is leased already: undefined. */
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
  /** Of those that could not be leased: they stay due. */
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
 * `leaseOne` for a record that was due when it was looked for. One that this very look has leased already, and was not
 * told of, is given again.
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
 * The store has been away for longer than a lease: leases and rows of processes may have run out only because they could
 * not be renewed. Those who have them are given the time to.
 */
function isAway({ since, leaseMs }: Asked, { state }: RecordRow): boolean {
  return state === 'leased' && performance.now() - since > leaseMs;
}
