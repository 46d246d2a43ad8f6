// Gives the plans of a batch the rows that they read and write: known, guessed or missing (admission.md §8.1, §8.3,
// §8.11).
// Called by batch-commit.ts, which begins each plan with `attemptOf`. The rules see these rows as `Rows`.
import type { Counted, RowId, RowKind, Scope } from '../backend.ts';
import type { StoreLimits } from '../store.ts';
import type { RegistrationTable } from '../rules/registration-rules.ts';
import type { NeededRow, RecordRow, Rows, Usage } from '../rules/rule-rows.ts';
import type { AnyRow, RowData, Sweep } from './row-data.ts';
import { fitted, nameOf, PROCESSES, scopeName, sweepName } from './row-data.ts';
import { addTo, isFar, usageOf } from './usage.ts';

/** A row as a batch knows it: as stored, and as the plans of the current round have changed it. */
export interface Entry {
  readonly id: RowId;
  /** The result of `nameOf(id)`. */
  readonly name: string;
  /** The version in the store; undefined: the store has no such row. */
  version: number | undefined;
  /** The row in the store, which may have expired. */
  stored: AnyRow | undefined;
  /** The row as the plans of this round have left it. */
  row: AnyRow | undefined;
  /** The body as the plans of this round have left it. undefined: it is unchanged; null: it is deleted. */
  body: Uint8Array | null | undefined;
  /** The body in the store, if it was loaded. */
  storedBody: Uint8Array | undefined;
  /** True if the row was read from the store for this batch; false if it is a guess. */
  isVerified: boolean;
  /** The records that wait for this row's task, if the row is a task's and they were looked up. */
  waiters: Waiters | undefined;
  /** The draft (plans that commit together) whose uncommitted changes include this row; undefined: none. */
  writer: Draft | undefined;
}

/** The oldest stored events that wait for a task, the earliest first. `areAll`: no other waits (admission.md §8.10). */
export interface Waiters {
  readonly first: readonly Entry[];
  readonly areAll: boolean;
}

/** Plans that have to be committed together, because one of them read what another wrote (admission.md §8.3). */
export interface Draft {
  readonly jobs: PlanRequest[];
  readonly reads: Set<Entry>;
  readonly writes: Map<Entry, Change>;
  /** The version that all rows written by these plans get. */
  next: number;
}

/** Thrown by a plan that lacks a row, a count or a deletion. batch-commit.ts supplies it and plans the call again. */
export class Missing extends Error {
  override readonly name = 'Missing';
  readonly need: Need;
  constructor(need: Need) {
    super('a row that was not loaded');
    this.need = need;
  }
}

export type Need =
  | { readonly row: RowId }
  | { readonly rows: readonly RowId[] }
  | { readonly process: string }
  | { readonly body: RowId }
  | { readonly counts: readonly Scope[] }
  /** Expired rows have to be deleted before the plan can run, because a cap is near. */
  | { readonly sweep: Sweep }
  /** The changes of an earlier plan of this round have to be committed before the plan can run. */
  | 'next-round';

/** All rows, counts and deletions that several plans need, each once, by name. */
interface Needed {
  readonly rows: Map<string, RowId>;
  readonly bodies: Map<string, RowId>;
  readonly counts: Map<string, Scope>;
  readonly sweeps: Map<string, Sweep>;
  readonly processes: Set<string>;
}

export function together(needs: readonly Need[]): Needed {
  const needed: Needed = {
    rows: new Map(),
    bodies: new Map(),
    counts: new Map(),
    sweeps: new Map(),
    processes: new Set(),
  };
  const { rows, bodies, counts, sweeps, processes } = needed;
  for (const need of needs) {
    if (need === 'next-round') continue;
    if ('row' in need) rows.set(nameOf(need.row), need.row);
    else if ('rows' in need) for (const row of need.rows) rows.set(nameOf(row), row);
    else if ('process' in need) processes.add(need.process);
    else if ('body' in need) bodies.set(nameOf(need.body), need.body);
    else if ('counts' in need) for (const scope of need.counts) counts.set(scopeName(scope), scope);
    else sweeps.set(sweepName(need.sweep), need.sweep);
  }
  return needed;
}

/** All rows that plans read and write: those of events, and those of registrations. */
export type DriverRows = Rows & RegistrationTable;

/** One call of the store, as a function over rows (its plan), with the conditions for its result. */
export interface PlanRequest {
  /** Decides the row changes and the result of the call. It is pure: it reads and writes only `rows`. */
  readonly plan: (rows: DriverRows, now: number) => unknown;
  /** True if a 2xx may depend on this result. Then a commit is made even if the plan writes nothing. */
  readonly isBarrier: (answer: unknown) => boolean;
  /** True if an unknown row is at first guessed to be absent. This saves a load, as most accepted events are new. */
  readonly guessesAbsent: boolean;
  /** The caps that an accept must not exceed; `usage` compares the counts with them. */
  readonly limits?: StoreLimits;
  tries: number;
  answer?: unknown;
}

/** The counts of one scope, and the time at which this process received them, by `performance.now()`. */
export interface KnownCount extends Counted {
  readonly seenAt: number;
}

/** The rows and counts that one batch knows. */
export interface Batch {
  readonly entries: Map<string, Entry>;
  /** Returns a row as this process last wrote it: a guess, because others may have changed it since. */
  readonly remembered: (name: string) => Pick<Entry, 'version' | 'stored'> | undefined;
  /** Returns the last known counts of a scope (one sender, or one key id), by its `scopeName`. */
  readonly counts: (name: string) => KnownCount | undefined;
  readonly nonces: () => number;
  /** The names of scopes (senders and key ids) whose counts were read for this batch, because a cap is near. */
  readonly fresh: Set<string>;
  /** The scopes (senders and key ids) whose counts are too old. The next commit returns new ones. */
  readonly old: Map<string, Scope>;
  /** The view of the rows that all plans of the batch use in turn. It is made for the first plan. */
  touched?: TouchedRows;
  /** The names of the sets of rows whose expired rows were deleted for this batch. */
  readonly swept: Set<string>;
  /** Returns the time (Unix ms, store's clock) of the last deletion of a set's expired rows, by `sweepName`. */
  readonly sweptAt: (name: string) => number | undefined;
  /** The time until which each process that was looked up is alive, by its id. Unix ms; 0: it has no row. */
  readonly processes: Map<string, number>;
}

/** A row as one plan has written it. `body`: undefined if it is unchanged, null if it is deleted. */
export interface Change {
  readonly row: AnyRow;
  readonly body: Uint8Array | null | undefined;
}

/** One run of a plan: the rows that it uses, and a record of its reads and writes. */
export interface Attempt {
  readonly rows: DriverRows;
  readonly reads: Set<Entry>;
  readonly writes: Map<Entry, Change>;
  /** The waiting records of tasks, as this plan has changed them. */
  readonly waiters: ReadonlyMap<Entry, Waiters | undefined>;
}

/** The age from which counts are too old: the next commit returns new ones. Ms. */
const COUNT_AGE_MS = 1000;

/** With `lately`, a younger deletion of expired rows is not repeated: only an alarm depends on it. Ms: 10 s. */
const LATELY_MS = 10_000;

const nonceScope = (sender: string, keyid: string): Scope => ({ sender, keyid: fitted(keyid) });

/** Returns the scopes to which an accept adds rows: its sender, and its key id if it has a nonce. */
export function scopesOf(sender: string, keyid: string | undefined): readonly Scope[] {
  return keyid === undefined ? [{ sender }] : [{ sender }, nonceScope(sender, keyid)];
}

function isUnexpired(row: AnyRow, now: number): boolean {
  return row.expiresAt === null || row.expiresAt > now;
}

/** Notes the scopes (senders and key ids) whose counts are too old, so that the next commit returns new ones. */
function noteOld({ counts, old }: Batch, scopes: readonly Scope[], names: readonly string[]): void {
  const oldest = performance.now() - COUNT_AGE_MS;
  for (const [at, name] of names.entries()) {
    const scope = scopes[at];
    if (scope && (counts(name)?.seenAt ?? 0) < oldest) old.set(name, scope);
  }
}

/** Begins a run of a plan. Its commit checks that the rows which the plan read are unchanged (admission.md §8.3). */
export function attemptOf(batch: Batch, request: PlanRequest): Attempt {
  batch.touched ??= touchedRowsOf(batch);
  return batch.touched.begin(request);
}

/** The view of a batch's rows that all its plans use in turn. `begin` prepares it for the next plan. */
interface TouchedRows {
  readonly begin: (job: PlanRequest) => Attempt;
}

function touchedRowsOf(batch: Batch): TouchedRows {
  let request: PlanRequest;
  let reads: Attempt['reads'];
  let writes: Attempt['writes'];
  let waiters: Map<Entry, Waiters | undefined>;
  // A plan asks for the same few rows again and again, so the last row of each kind is remembered.
  let last: { [K in RowKind]?: Scope & { readonly id: string; readonly entry: Entry } };
  const waitersOf = (task: Entry): Waiters | undefined =>
    waiters.has(task) ? waiters.get(task) : task.waiters;

  const lookUp = (id: RowId): Entry => {
    const name = nameOf(id);
    let entry = batch.entries.get(name);
    if (!entry) {
      const known = request.tries === 0 ? batch.remembered(name) : undefined;
      if (!known && !(request.guessesAbsent && request.tries === 0)) throw new Missing({ row: id });
      entry = newEntry(id, name, known?.version, known?.stored, false);
      batch.entries.set(name, entry);
    }
    reads.add(entry);
    return entry;
  };
  const entryOf = (kind: RowKind, scope: Scope, id: string): Entry => {
    const known = last[kind];
    if (known?.id === id && known.sender === scope.sender && known.keyid === scope.keyid) return known.entry;
    const entry = lookUp({ scope, kind, id: fitted(id) });
    last[kind] = { ...scope, id, entry };
    return entry;
  };
  const get = <K extends RowKind>(_kind: K, entry: Entry): RowData[K] | undefined =>
    (writes.get(entry)?.row ?? entry.row) as RowData[K] | undefined;
  const need = (sender: string, rows: readonly NeededRow[]): void => {
    const named = rows.map(({ kind, id }): RowId => ({ scope: { sender }, kind, id: fitted(id) }));
    const missing = named.filter((id) => !batch.entries.has(nameOf(id)));
    if (missing.length > 0) throw new Missing({ rows: missing });
  };
  const find = <K extends RowKind>(
    kind: K,
    scope: Scope,
    id: string,
    now: number,
  ): RowData[K] | undefined => {
    const row = get(kind, entryOf(kind, scope, id));
    return row && isUnexpired(row, now) ? row : undefined;
  };
  const write = (entry: Entry, row: AnyRow, body?: Uint8Array | null): void => {
    writes.set(entry, { row, body: body === undefined ? writes.get(entry)?.body : body });
  };
  const taskOf = (sender: string, id: string): Entry => entryOf('task', { sender }, id);

  // Saves a record. A change of its state, owner or wait also writes its task's row (admission.md §8.4). So two
  // processes cannot both change records of one task.
  const saveRecord = (row: RecordRow, body: Uint8Array | null | undefined): void => {
    const entry = entryOf('record', { sender: row.sender }, row.key);
    const before = get('record', entry);
    write(entry, row, body);
    const { task, state, owner, parkedUntil } = row;
    if (!task || (before?.state === state && before.owner === owner && before.parkedUntil === parkedUntil))
      return;
    const of = taskOf(row.sender, task.id);
    const known = get('task', of);
    if (!known) return;
    const wasParked = before !== undefined && before.parkedUntil > 0;
    const isParked = parkedUntil > 0;
    write(of, { ...known, waiting: known.waiting || isParked });
    if (wasParked !== isParked)
      waiters.set(of, isParked ? joined(waitersOf(of), entry) : left(waitersOf(of), entry));
  };

  // Most plans of a batch have the same sender and key id, so the names of their scopes are remembered.
  let named: Named | undefined;
  /** True if the last call of `usage` found that no cap is near. */
  let areCapsFar = false;
  const namesOf = (sender: string, keyid: string | undefined): Named => {
    if (named?.sender !== sender || named.keyid !== keyid) {
      const scopes = scopesOf(sender, keyid);
      named = { sender, keyid, scopes, names: scopes.map(scopeName) };
    }
    return named;
  };
  const usage = (sender: string, keyid: string | undefined): Usage => {
    const { scopes, names } = namesOf(sender, keyid);
    const known = names.map((name) => batch.counts(name));
    if (known.includes(undefined)) throw new Missing({ counts: scopes });
    noteOld(batch, scopes, names);
    const used = usageOf(known[0], known[1], batch.nonces());
    const { limits } = request;
    areCapsFar = !limits || isFar(used, limits, keyid !== undefined);
    if (batch.swept.size === 0 && areCapsFar) return used;
    // Near a cap, or after expired rows were deleted, only counts read for this batch decide, with this plan's
    // additions. Additions of other plans count only once they are committed (admission.md §8.9).
    if (!names.every((name) => batch.fresh.has(name))) throw new Missing({ counts: scopes });
    for (const [entry, { row }] of writes) addTo(used, entry, row);
    return used;
  };
  const sweep = (of: Sweep, now: number, lately?: 'lately'): void => {
    const name = sweepName(of);
    if (batch.swept.has(name)) return;
    // Near a cap, a recent deletion is not enough: expired rows are deleted again, and the counts are read after that.
    const at = lately && areCapsFar ? batch.sweptAt(name) : undefined;
    if (at === undefined || Math.abs(now - at) >= LATELY_MS) throw new Missing({ sweep: of });
  };

  const rows: DriverRows = {
    nonce: ({ sender, keyid, nonce }, now) => find('nonce', nonceScope(sender, keyid), nonce, now),
    saveNonce: (row) => write(entryOf('nonce', nonceScope(row.sender, row.keyid), row.nonce), row),
    record: (sender, key, now) => find('record', { sender }, key, now),
    body: (sender, key) => {
      const entry = entryOf('record', { sender }, key);
      if (get('record', entry)?.bodyBytes === 0) return new Uint8Array();
      const body = writes.get(entry)?.body ?? entry.body ?? entry.storedBody;
      if (!body) throw new Missing({ body: entry.id });
      return body;
    },
    insertRecord: (row, body) => saveRecord(row, body && row.bodyBytes > 0 ? body : null),
    updateRecord: (row) => saveRecord(row, row.bodyBytes === 0 ? null : undefined),
    task: (sender, id, now) => find('task', { sender }, id, now),
    saveTask: (row) => {
      const entry = taskOf(row.sender, row.id);
      write(entry, { ...row, waiting: get('task', entry)?.waiting ?? false });
    },
    parked: (sender, id) => {
      const entry = taskOf(sender, id);
      const task = get('task', entry);
      if (!task?.waiting) return undefined;
      const known = waitersOf(entry);
      const [first] = known?.first ?? [];
      if (first) {
        reads.add(first);
        return get('record', first);
      }
      if (!known?.areAll) throw new Missing(entry.writer ? 'next-round' : { row: entry.id });
      write(entry, { ...task, waiting: false });
      return undefined;
    },
    notification: (sender, id, now) => find('notification', { sender }, id, now),
    saveNotification: (row) => write(entryOf('notification', { sender: row.sender }, row.id), row),
    usage,
    isProcessAlive: (id, now) => {
      const until = batch.processes.get(id);
      if (until === undefined) throw new Missing({ process: id });
      return until > now;
    },
    saveProcess: (row) => write(entryOf('process', PROCESSES, row.id), row),
    registration: (kind, sender, id, now) => find(kind, { sender }, id, now),
    needRows: need,
    saveRegistration: (row) => write(entryOf(row.kind, { sender: row.sender }, row.id), row),
    purge: () => {},
    purgeSender: (sender, now, _most, lately) => sweep({ sender }, now, lately),
    purgeNonces: (now, _most, of, lately) => {
      if (!of) sweep('nonces', now, lately);
      else if (of.keyid === undefined) sweep({ noncesOf: of.sender }, now, lately);
      else sweep(nonceScope(of.sender, of.keyid), now, lately);
    },
  };
  return {
    begin: (nextJob) => {
      request = nextJob;
      reads = new Set();
      writes = new Map();
      waiters = new Map();
      last = {};
      return { rows, reads, writes, waiters };
    },
  };
}

interface Named {
  readonly sender: string;
  readonly keyid: string | undefined;
  readonly scopes: readonly Scope[];
  readonly names: readonly string[];
}

/** Returns the one waiting record if no other waited. Otherwise undefined: only the store knows which is older. */
function joined(known: Waiters | undefined, entry: Entry): Waiters | undefined {
  return known?.areAll && known.first.length === 0 ? { first: [entry], areAll: true } : undefined;
}

function left(known: Waiters | undefined, entry: Entry): Waiters | undefined {
  return known && { ...known, first: known.first.filter((other) => other !== entry) };
}

export function newEntry(
  id: RowId,
  name: string,
  version: number | undefined,
  stored: AnyRow | undefined,
  isVerified: boolean,
): Entry {
  return {
    id,
    name,
    version,
    stored,
    row: stored,
    body: undefined,
    storedBody: undefined,
    isVerified,
    waiters: undefined,
    writer: undefined,
  };
}
