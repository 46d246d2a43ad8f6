// Runs a batch of store calls in rounds. A round plans the row changes of each call, commits them, and loads missing
// rows. Calls whose rows another process changed are planned again (admission.md §8.3 to §8.13).
// Called by optimistic-store.ts and lease-due.ts; the backend loads and commits.
import { Fault } from '../../shared/errors.ts';
import type { CommitResult, LoadResult, Row, RowId, Within } from '../backend.ts';
import type { ProcessRow, RecordRow } from '../rules/rule-rows.ts';
import { sleep } from '../../shared/time-limits.ts';
import type { StoreClock } from './clock-and-rows.ts';
import {
  type Attempt,
  attemptOf,
  type Batch,
  type Draft,
  type Entry,
  type KnownCount,
  Missing,
  type Need,
  newEntry,
  type PlanRequest,
  type Waiters,
  together,
} from './plan-rows.ts';
import { PROCESSES, fitted, nameOf, unpacked } from './row-data.ts';
import { unitOf } from './commit-unit.ts';

/** A call of the store that waits for its result. `resolve` or `reject` settles the caller's promise. */
export interface QueuedPlan extends PlanRequest {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface Shared {
  readonly clock: StoreClock;
  readonly rows: Remembered;
  readonly counts: CountBook;
  readonly nextVersion: () => number;
  /** Returns a number that is at least 0 and below 1. It spreads the retries of several processes. */
  readonly random: () => number;
}

/** Rows as this process last wrote them, by `nameOf`. Calls use them as guesses, which commits check. */
export interface Remembered {
  readonly get: (name: string) => Pick<Entry, 'version' | 'stored'> | undefined;
  readonly put: (entry: Entry) => void;
  /** Forgets a row that another process has changed, because a guess from the remembered row would be wrong again. */
  readonly forget: (name: string) => void;
}

export interface CountBook {
  /** Returns the last known counts of a scope (a sender or one key id), by its `scopeName`, if any are known. */
  readonly get: (name: string) => KnownCount | undefined;
  readonly nonces: () => number;
  readonly put: (result: LoadResult) => void;
  /** Returns the time (Unix ms, store's clock) of the last deletion of a set's expired rows, by `sweepName`. */
  readonly sweptAt: (name: string) => number | undefined;
  readonly noteSwept: (name: string, now: number) => void;
}

/** The largest number of tries of a call, and of successive rounds that answer no call (admission.md §8.13). */
const MOST_TRIES = 96;

/** After this many failed tries of a call, a pause precedes each round, as other processes write the same rows. */
const PAUSED_TRY = 3;
const PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 40;

/** The largest number of expired rows that one deletion removes before a sender near a cap is checked. */
const SWEEP_MOST = 4096;

/** Rows that were already loaded, and the time at which the database was asked for them, by `performance.now()`. */
export interface Known {
  readonly result: LoadResult;
  readonly since: number;
}

/** Runs rounds until each call has its result or error. The returned promise never rejects. */
export async function runJobs(
  requests: readonly QueuedPlan[],
  within: Within,
  shared: Shared,
  known?: Known,
): Promise<void> {
  const batch = newBatch(shared);
  let left = requests;
  let idle = 0;
  try {
    if (known) note(batch, shared, known.result, known.since);
    while (left.length > 0) {
      const tries = Math.max(...left.map((request) => request.tries));
      if (tries >= PAUSED_TRY) await pause(tries - PAUSED_TRY, shared.random());
      const again = await runRound(left, batch, within, shared);
      idle = again.length < left.length ? 0 : idle + 1;
      left = again.filter((job) => job.tries < MOST_TRIES && idle < MOST_TRIES);
      for (const job of again) if (!left.includes(job)) job.reject(tooMany());
    }
  } catch (error) {
    // A row may be unreadable, or a backend may throw. Every waiting caller must still get an answer.
    failAll(left, error);
  }
}

function tooMany(): Fault {
  return new Fault('store_unavailable', `Others changed the same rows ${MOST_TRIES} times meanwhile.`);
}

function pause(tries: number, random: number): Promise<void> {
  return sleep(Math.min(PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS) * random);
}

function failAll(requests: readonly PlanRequest[], error: unknown): void {
  for (const request of requests) (request as QueuedPlan).reject(error);
}

function newBatch(shared: Shared): Batch {
  return {
    entries: new Map(),
    remembered: shared.rows.get,
    counts: shared.counts.get,
    nonces: shared.counts.nonces,
    fresh: new Set(),
    old: new Map(),
    swept: new Set(),
    sweptAt: shared.counts.sweptAt,
    processes: new Map(),
  };
}

/** Plans calls, commits their changes, and loads rows that other calls lack. Returns the calls to plan again. */
async function runRound(
  requests: readonly QueuedPlan[],
  batch: Batch,
  within: Within,
  shared: Shared,
): Promise<readonly QueuedPlan[]> {
  const now = shared.clock.now();
  const { drafts, needs, waiting } = planAll(requests, batch, now);
  for (const draft of drafts) draft.next = shared.nextVersion();
  const units = drafts.map(unitOf);
  const counts = [...batch.old.values()];
  batch.old.clear();
  const since = performance.now();
  const committing = units.length > 0 ? within.commit({ at: now, units, counts }) : undefined;
  // The commit and the load run at the same time, because the commit does not need the rows that other calls lack.
  const [committed, loaded] = await Promise.allSettled([
    committing,
    lookUp(needs, { batch, within, shared, since }),
  ]);
  if (loaded.status === 'fulfilled' && loaded.value) note(batch, shared, loaded.value, since);
  const again = await settle(drafts, committed, { batch, within, shared, since });
  if (loaded.status === 'fulfilled') return [...again, ...waiting];
  failAll(waiting, loaded.reason);
  return again;
}

interface Planned {
  readonly drafts: readonly Draft[];
  readonly needs: readonly Need[];
  /** Calls that cannot be planned before further rows are loaded. */
  readonly waiting: readonly QueuedPlan[];
}

/** Plans the calls one after another. Each sees the rows as the calls before it in this round have left them. */
function planAll(requests: readonly QueuedPlan[], batch: Batch, now: number): Planned {
  const drafts = new Set<Draft>();
  const needs: Need[] = [];
  const waiting: QueuedPlan[] = [];
  for (const request of requests) {
    const attempt = attemptOf(batch, request);
    try {
      request.answer = request.plan(attempt.rows, now);
    } catch (error) {
      if (error instanceof Missing) {
        needs.push(error.need);
        waiting.push(request);
      } else request.reject(error);
      continue;
    }
    const guessed = guesses(request, attempt);
    if (guessed.length > 0) {
      for (const { id } of guessed) needs.push({ row: id });
      waiting.push(request);
    } else if (isAnswerable(request, attempt)) request.resolve(request.answer);
    else join(drafts, request, attempt);
  }
  return { drafts: [...drafts], needs, waiting };
}

/** Returns the guessed rows on which a result depends that no commit will check (admission.md §8.7). */
function guesses(request: QueuedPlan, { reads, writes }: Attempt): readonly Entry[] {
  if (writes.size > 0 || request.isBarrier(request.answer)) return [];
  return [...reads].filter(({ isVerified, writer }) => !isVerified && !writer);
}

/** True if a call can be answered now: it needs no commit, and depends on no uncommitted change of this round. */
function isAnswerable(request: QueuedPlan, { reads, writes }: Attempt): boolean {
  return writes.size === 0 && !request.isBarrier(request.answer) && ![...reads].some(({ writer }) => writer);
}

/** Combines a call with the calls whose uncommitted changes it read: all take effect or none (admission.md §8.12). */
function join(drafts: Set<Draft>, request: QueuedPlan, attempt: Attempt): void {
  const others = new Set<Draft>();
  for (const { writer } of attempt.reads) if (writer) others.add(writer);
  for (const [entry, { row, body }] of attempt.writes) {
    entry.row = row;
    if (body !== undefined) entry.body = body;
  }
  for (const [task, waiters] of attempt.waiters) task.waiters = waiters;
  const { reads, writes } = attempt;
  const draft: Draft = { jobs: [request], reads, writes, next: 0 };
  for (const other of others) {
    drafts.delete(other);
    draft.jobs.unshift(...other.jobs);
    for (const entry of other.reads) reads.add(entry);
    for (const [entry, change] of other.writes) if (!writes.has(entry)) writes.set(entry, change);
  }
  for (const entry of writes.keys()) entry.writer = draft;
  drafts.add(draft);
}

/** Loads the rows, bodies and counts that calls lack. If a sender is near a cap, first deletes expired rows. */
async function lookUp(
  needs: readonly Need[],
  { batch, within, shared }: Context,
): Promise<LoadResult | undefined> {
  const { rows, bodies, counts, sweeps, processes } = together(needs);
  for (const [name, scope] of sweeps) {
    await within.sweep(scope, SWEEP_MOST);
    batch.swept.add(name);
    shared.counts.noteSwept(name, shared.clock.now());
    // Counts that were read earlier include the deleted rows, so they are read again.
    batch.fresh.clear();
  }
  if (processes.size > 0) await lookUpProcesses([...processes], batch, within);
  if (rows.size + bodies.size + counts.size === 0) return undefined;
  const result = await within.load({
    rows: [...rows.values()],
    bodies: [...bodies.values()],
    counts: [...counts.values()],
  });
  for (const id of [...rows.values(), ...bodies.values()]) verifyAbsent(batch, id);
  for (const name of counts.keys()) batch.fresh.add(name);
  return result;
}

/** Loads the rows of processes by themselves, because they belong to no sender. Commits do not check these rows. */
async function lookUpProcesses(ids: readonly string[], batch: Batch, within: Within): Promise<void> {
  const rows = ids.map((id): RowId => ({ scope: PROCESSES, kind: 'process', id: fitted(id) }));
  const found = await within.load({ rows, bodies: [], counts: [] });
  for (const id of ids) batch.processes.set(id, 0);
  for (const row of found.rows) {
    const { id, expiresAt } = unpacked(row) as ProcessRow;
    batch.processes.set(id, expiresAt);
  }
}

/** Notes in the batch that the store lacks a row; `note` corrects this if a reply has it. Uncommitted rows stay. */
function verifyAbsent(batch: Batch, id: Entry['id']): void {
  const name = nameOf(id);
  const entry = batch.entries.get(name);
  if (entry?.writer) return;
  batch.entries.set(name, Object.assign(entry ?? newEntry(id, name, undefined, undefined, true), ABSENT));
}

const ABSENT = {
  version: undefined,
  stored: undefined,
  row: undefined,
  body: undefined,
  storedBody: undefined,
  isVerified: true,
  waiters: undefined,
} as const;

/** Takes over a reply's rows, counts and clock. Rows with uncommitted changes are skipped: `settle` updates them. */
function note(batch: Batch, shared: Shared, result: LoadResult, since: number): void {
  shared.clock.seen(result.now, since);
  shared.counts.put(result);
  const tasks: Entry[] = [];
  for (const row of result.rows) {
    const name = nameOf(row);
    const entry = batch.entries.get(name);
    if (entry?.writer) continue;
    const stored = unpacked(row);
    const { scope, kind, id } = row;
    const is = entry ?? newEntry({ scope, kind, id }, name, undefined, undefined, true);
    Object.assign(is, ABSENT, {
      version: row.version,
      stored,
      row: stored,
      storedBody: row.body ?? (is.version === row.version ? is.storedBody : undefined),
    });
    batch.entries.set(name, is);
    if (kind === 'task') tasks.push(is);
  }
  for (const task of tasks) task.waiters = waitersIn(batch, task, result.rows);
}

/** Returns the stored events that wait for a task. A load of the task's row also loads the two oldest of them. */
function waitersIn(batch: Batch, task: Entry, rows: readonly Row[]): Waiters {
  const first: Entry[] = [];
  for (const row of rows) {
    if (row.kind !== 'record' || row.scope.sender !== task.id.scope.sender) continue;
    const entry = batch.entries.get(nameOf(row));
    const record = entry?.stored as RecordRow | undefined;
    if (!entry || !record?.task || record.parkedUntil === 0) continue;
    if (fitted(record.task.id) === task.id.id) first.push(entry);
  }
  // Records that were loaded by name may stand anywhere in the reply, so all are sorted, the oldest first.
  const insertedAt = ({ stored }: Entry): number => (stored as RecordRow).insertedAt;
  first.sort((one, other) => insertedAt(one) - insertedAt(other));
  return { first, areAll: first.length < 2 };
}

interface Context {
  readonly batch: Batch;
  readonly within: Within;
  readonly shared: Shared;
  /** The time at which the commit was sent, by `performance.now()`. */
  readonly since: number;
}

/** Answers committed calls. Returns the calls to plan again, because other processes changed their rows. */
async function settle(
  drafts: readonly Draft[],
  committed: PromiseSettledResult<CommitResult | undefined>,
  context: Context,
): Promise<readonly QueuedPlan[]> {
  if (committed.status === 'fulfilled') return committed.value ? taken(drafts, committed.value, context) : [];
  await rolledBack(drafts, committed.reason, context);
  return [];
}

/** Rejects the calls of a commit that failed; runs them separately instead if the data of one may be the cause. */
async function rolledBack(
  drafts: readonly Draft[],
  reason: unknown,
  { within, shared }: Context,
): Promise<void> {
  for (const draft of drafts) undo(draft);
  const requests = drafts.flatMap((draft) => draft.jobs as QueuedPlan[]);
  if (requests.length === 1 || !within.isAboutOne(reason)) failAll(requests, reason);
  else if (drafts.length > 1) {
    // Each draft runs alone, so that wrong data of one sender does not fail the calls of others.
    await Promise.all(drafts.map((draft) => runJobs(draft.jobs as QueuedPlan[], within, shared)));
  } else for (const request of requests) await runJobs([request], within, shared);
}

// Answers the calls of drafts (plans that commit together) that the store has committed. Returns the calls to plan
// again: others changed their rows, or the time that the plans used was wrong (`isOld`).
function taken(drafts: readonly Draft[], result: CommitResult, context: Context): readonly QueuedPlan[] {
  const { batch, shared, since } = context;
  const refused = new Set(result.isOld ? drafts.keys() : result.refused);
  // Committed drafts (plans that commit together) are handled first: undoing a refused one may reset rows they wrote.
  for (const [place, draft] of drafts.entries()) {
    if (refused.has(place)) continue;
    keep(draft, shared);
    for (const request of draft.jobs as QueuedPlan[]) request.resolve(request.answer);
  }
  const again: QueuedPlan[] = [];
  for (const place of refused) {
    const draft = drafts[place];
    if (!draft) continue;
    undo(draft);
    if (!result.isOld) forget(draft, batch, shared);
    again.push(...(draft.jobs as QueuedPlan[]));
  }
  if (result.isOld) shared.clock.seen(result.now, since, true);
  note(batch, shared, result, since);
  if (!result.isOld) for (const job of again) job.tries += 1;
  if (refused.size > 0) batch.fresh.clear();
  return again;
}

/** Forgets all rows that a refused draft (plans that commit together) used, because others have changed some. */
function forget({ reads, writes }: Draft, batch: Batch, shared: Shared): void {
  for (const { id, name } of [...reads, ...writes.keys()]) {
    verifyAbsent(batch, id);
    shared.rows.forget(name);
  }
}

function undo({ writes, reads }: Draft): void {
  for (const entry of [...writes.keys(), ...reads]) {
    Object.assign(entry, { row: entry.stored, body: undefined, writer: undefined, waiters: undefined });
  }
}

function keep({ reads, writes, next }: Draft, shared: Shared): void {
  for (const entry of writes.keys()) {
    entry.version = next;
    entry.stored = entry.row;
    entry.storedBody = entry.body === undefined ? entry.storedBody : (entry.body ?? undefined);
    entry.body = undefined;
    entry.writer = undefined;
    entry.isVerified = true;
    shared.rows.put(entry);
  }
  // A task that is polled often has no row until an event of it is stored. So the absence of its row is remembered too.
  for (const entry of reads) if (entry.id.kind === 'task' && !entry.stored) shared.rows.put(entry);
}
