// Makes a store of a `Backend`: runs the rules over loaded or guessed rows, and commits the changes if these rows are
// unchanged (admission.md §8.1).
// Called by the Postgres, MySQL and Redis stores, and by users who write a backend.
import { unlessAborted } from '../../shared/time-limits.ts';
import type {
  AcceptRequest,
  CompleteResult,
  InboxCount,
  InboxPage,
  InboxQuery,
  Store,
  StoreInbox,
  TransactionRequest,
  RegistrationDueRequest,
  RegistrationDueResult,
  RegistrationKind,
  RegistrationRow,
} from '../store.ts';
import type { Backend, Scope, Within, Row } from '../backend.ts';
import { accept } from '../rules/accept-rules.ts';
import { checkedQuery, discard, inspect, redrive, seen } from '../rules/claim.ts';
import { bounded, held, listed, longestTurnMs, pageOf, planned } from '../rules/registration-rules.ts';
import type { RecordRow, Rows } from '../rules/rule-rows.ts';
import { alive, complete, fail, heldBy, leaseLost, peek, renew } from '../rules/settle-rules.ts';
import { createBatches, type Queued } from './batch-queue.ts';
import { type Ask, foundGroups, queuedPlan, type Plan, READING } from './plan.ts';
import { scopesOf } from './plan-rows.ts';
import { leaseDue, type SenderTurn } from './lease-due.ts';
import { runJobs, type Shared } from './batch-commit.ts';
import { countBook, rememberedRows } from './remembered.ts';
import { idOf, PROCESSES, scopeName, unpacked } from './row-data.ts';
import { stateOf, storeClock } from './clock-and-rows.ts';

/**
 * Makes versions of rows by counting up from a random number of 52 bits. No version repeats, even if a row is deleted
 * and inserted again (admission.md §8.6).
 */
export function versions(): () => number {
  // The random number is drawn with the first version, because workerd gives no random values while a module is loaded.
  let last: number | undefined;
  return () => {
    last = ((last ?? random52()) + 1) % 2 ** 52;
    return last;
  };
}

function random52(): number {
  const [high = 0, low = 0] = globalThis.crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 20) * 2 ** 32 + low;
}

/** Options of `storeOf`: an offset of the store's clock, and the source of random numbers. Tests control both. */
export interface DriverOptions {
  /** Returns the offset that is added to the store's own time, ms. The backend must add the same offset. */
  readonly clockOffsetMs: () => number;
  /** Returns a number in [0, 1) that spreads the retries of several processes. */
  readonly random: () => number;
}

/** The store that `storeOf` makes of a `Backend`: it always has an inbox, and `sweep` to delete expired data. */
export type DrivenStore<Tx> = Store<Tx> &
  Required<Pick<Store<Tx>, typeof Symbol.asyncDispose>> & {
    readonly inbox: StoreInbox;
    /**
     * Deletes all expired rows of the given scopes. A scope is all rows of a sender, or the nonces of one of its key
     * ids.
     *
     * @returns the number of deleted rows.
     */
    readonly sweep: (scopes: readonly Scope[]) => Promise<number>;
  };

const always = (): boolean => true;

/**
 * The conditions of a call that ends the run of an event. Even a repeated call, which writes nothing, can lead to a
 * 2xx. So each result but `lost` needs a durable commit.
 */
const ENDING: Ask = { isBarrier: (answer) => answer !== 'lost', guessesAbsent: false };

const ENDED: ReadonlySet<unknown> = new Set(['applied', 'stale', 'dead']);

/**
 * One call in 64 of those that add rows, chosen at random, deletes expired rows of its sender and key id. It deletes at
 * most 1,024 of each, which is more than 64 accepts add.
 */
const SWEEP_EVERY = 64;
const SWEEP_MOST = 1024;

/** The largest number of expired rows that one request to the backend deletes, so that each request is short. */
const SWEEP_STEP = 500;

/**
 * Creates a store for a database that this package has no store for. You write a `Backend`, which reads rows, and
 * replaces rows that are unchanged since they were read; the store adds all the rules of `Store`. Test your backend
 * with `describeStoreContract`. Unstable, as `Backend` is.
 * @throws Fault, from its methods, `store_unavailable` or `not_durable` as in `Store`.
 * @example
 * ```ts
 * import { type Backend, storeOf } from 'proto-webhooks/store';
 *
 * export function myStore(backend: Backend) {
 *   return storeOf(backend, { clockOffsetMs: () => 0, random: Math.random });
 * }
 * ```
 */
export function storeOf<Tx>(
  backend: Backend<Tx> & Required<Pick<Backend<Tx>, 'transaction'>>,
  options: DriverOptions,
): DrivenStore<Tx> & Required<Pick<Store<Tx>, 'transaction'>>;
export function storeOf<Tx>(backend: Backend<Tx>, options: DriverOptions): DrivenStore<Tx>;
export function storeOf<Tx>(backend: Backend<Tx>, options: DriverOptions): DrivenStore<Tx> {
  const clock = storeClock(options.clockOffsetMs);
  const shared: Shared = {
    clock,
    rows: rememberedRows(),
    counts: countBook(),
    nextVersion: versions(),
    random: options.random,
  };
  const turn: SenderTurn = { last: '' };
  const state = stateOf(backend);
  const batches = createBatches({
    lanes: backend.concurrency,
    bySender: backend.bySender,
    timeoutMs: backend.timeoutMs,
    run: async (requests) => {
      await runJobs(requests, backend, shared);
      await sweepSome(requests, backend, options.random);
    },
  });

  const run = <T>(sender: string, plan: Plan<T>, ask: Ask): Promise<T> =>
    new Promise((resolve, reject) => {
      state.check();
      batches.add({
        ...queuedPlan(plan, ask, resolve, (error) => reject(backend.asFault(error))),
        sender,
        bytes: ask.bytes ?? 0,
        ...(ask.scopes && { scopes: ask.scopes }),
        since: performance.now(),
      });
    });
  const direct = <T>(work: () => Promise<T>): Promise<T> =>
    state.during(work).catch((error: unknown) => {
      throw backend.asFault(error);
    });

  const { identity } = backend;
  const close = (): Promise<void> => state.close(() => batches.idle());
  const store: DrivenStore<Tx> = {
    name: backend.name,
    open: async () => {
      await state.open();
      const since = performance.now();
      await direct(async () => clock.seen(await backend.clock(), since));
    },
    durability: () => direct(() => backend.durability()),
    ...(identity && { identity: () => direct(identity) }),
    ...(backend.keepDurability && { keepDurability: backend.keepDurability }),
    ...(backend.watchIdentity && { watchIdentity: backend.watchIdentity }),
    get durabilityAdvice() {
      return backend.advice();
    },
    accept: (request) =>
      run(request.sender, (rows, now) => clock.told(accept(rows, request, now)), {
        // Even a refusal over a cap needs a commit, which checks it: counts and rows may have been read at different
        // times.
        isBarrier: always,
        guessesAbsent: true,
        limits: request.limits,
        bytes: bytesOf(request),
        scopes: scopesOf(request.sender, request.nonce?.keyid),
      }),
    complete: (request) => run(request.sender, (rows, now) => complete(rows, request, now), ENDING),
    fail: (request) => run(request.sender, (rows, now) => fail(rows, request, now), ENDING),
    renew: (request) => run(request.sender, (rows, now) => renew(rows, request, now), READING),
    alive: (request) =>
      run(PROCESSES.sender, (rows, now) => alive(rows, request, now), {
        isBarrier: () => false,
        guessesAbsent: true,
        scopes: [PROCESSES],
      }),
    peek: (sender, key) =>
      run(sender, (rows, now) => peek(rows, sender, key, now), {
        isBarrier: (answer) => ENDED.has(answer),
        guessesAbsent: false,
      }),
    clock: () =>
      direct(async () => {
        const since = performance.now();
        const now = await backend.clock();
        clock.seen(now, since);
        return now;
      }),
    inbox: {
      lease: (request) => direct(() => leaseDue(backend, shared, request, turn)),
      overdueMs: () => direct(() => backend.overdueMs()),
      list: (query) => direct(() => list(backend, query)),
      ...(backend.listCounts && { counts: () => direct(() => counts(backend)) }),
      inspect: (sender, key) =>
        run(sender, (rows, now) => inspect(rows, { sender, key }, now), {
          isBarrier: always,
          guessesAbsent: false,
        }),
      redrive: (sender, key) => run(sender, (rows, now) => redrive(rows, { sender, key }, now), READING),
      discard: (sender, key, retentionMs, only) =>
        run(sender, (rows, now) => discard(rows, { sender, key, retentionMs, only }, now), READING),
    },
    ...registrationsIn(backend, shared, run, direct),
    sweep: (scopes) => direct(() => sweepAll(backend, scopes)),
    close,
    [Symbol.asyncDispose]: close,
  };
  if (!backend.transaction) return store;
  const { transaction } = backend;
  return Object.assign(store, {
    transaction: <T>(
      request: TransactionRequest,
      fn: (tx: Tx) => T | Promise<T>,
      over?: AbortSignal,
    ): Promise<T> =>
      state.during(() =>
        transaction(
          request,
          async (tx, within) => {
            const runIn = <A>(plan: (rows: Rows, now: number) => A): Promise<A> =>
              runOne(plan, READING, within, shared);
            if (!(await runIn((rows, now) => heldBy(rows, request, now) !== undefined))) throw leaseLost();
            const work = async (): Promise<T> => fn(tx);
            const value = await (over ? unlessAborted(over, work) : work());
            const end = (rows: Rows, now: number): CompleteResult =>
              heldBy(rows, request, now) ? complete(rows, request, now) : 'lost';
            if ((await runIn(end)) === 'lost') throw leaseLost();
            return value;
          },
          over,
        ),
      ),
  });
}

/** Runs one plan (a function that decides row changes) by itself, outside the batches. */
function runOne<T>(plan: Plan<T>, ask: Ask, within: Within, shared: Shared): Promise<T> {
  return new Promise((resolve, reject) => {
    void runJobs([queuedPlan(plan, ask, resolve, reject)], within, shared);
  });
}

/**
 * Deletes expired rows of the senders and key ids of some requests, chosen at random. So the number of rows does not
 * grow without bound. The returned promise never rejects.
 */
async function sweepSome(
  requests: readonly Queued[],
  backend: Pick<Backend, 'sweep'>,
  random: () => number,
): Promise<void> {
  const due = new Map<string, Scope>();
  for (const { scopes = [] } of requests) {
    if (scopes.length === 0 || random() * SWEEP_EVERY >= 1) continue;
    for (const scope of scopes) due.set(scopeName(scope), scope);
  }
  try {
    for (const scope of due.values()) await backend.sweep(scope, SWEEP_MOST);
  } catch {
    // The first failure ends this call, so that it does not wait for an unreachable backend once for each scope. A
    // later call sweeps the remaining scopes.
  }
}

async function sweepAll(backend: Pick<Backend, 'sweep'>, scopes: readonly Scope[]): Promise<number> {
  let deleted = 0;
  for (const scope of scopes) {
    for (let last = SWEEP_STEP; last > 0; deleted += last) last = await backend.sweep(scope, SWEEP_STEP);
  }
  return deleted;
}

/** Lists records for `StoreInbox.list`. */
async function list(backend: Backend, query: InboxQuery): Promise<InboxPage> {
  const { rows, next } = await backend.page(checkedQuery(query));
  return {
    records: rows.map((row) => seen(unpacked(row) as RecordRow)),
    ...(next !== undefined && { next }),
  };
}

/** Counts records for `StoreInbox.counts`. */
async function counts(backend: Backend): Promise<readonly InboxCount[]> {
  const found = (await backend.listCounts?.()) ?? [];
  return found.map(({ list: state, count, oldest }) => {
    const { sender, insertedAt } = unpacked(oldest) as RecordRow;
    return { sender, state, count, oldestInsertedAt: insertedAt };
  });
}

/**
 * The estimated bytes that are written for each media buy that a delivery report names. A report names up to 10,000.
 */
const WINDOW_BYTES = 1024;

/**
 * The estimated bytes of a row that keeps the last states of a media buy or subscription. It is always written whole.
 */
const STATES_BYTES = 65_536;

const bytesOf = ({ event }: AcceptRequest): number =>
  event
    ? event.body.length +
      WINDOW_BYTES * (event.report?.windows?.length ?? 0) +
      (event.state?.holder ? STATES_BYTES : 0)
    : 0;

/**
 * The estimated bytes that one call of `registrations.run` writes. The rows are not known before the call is planned.
 */
const ROW_BYTES = 262_144;

type RunPlan = <T>(sender: string, plan: Plan<T>, ask: Ask) => Promise<T>;
type Direct = <T>(work: () => Promise<T>) => Promise<T>;

const rowOf = (row: Row): RegistrationRow => unpacked(row) as RegistrationRow;

/** Makes `Store.registrations`. Returns an empty object if the backend stores no registrations. */
export function registrationsIn(
  backend: Backend,
  shared: Shared,
  run: RunPlan,
  direct: Direct,
): Pick<Store, 'registrations'> {
  const { registrations } = backend;
  if (!registrations) return {};
  const last: Partial<Record<RegistrationKind, string>> = {};
  return {
    registrations: {
      run: async (sender, plan) => {
        const ask = { isBarrier: () => true, guessesAbsent: false, bytes: ROW_BYTES, scopes: [{ sender }] };
        const came = await run(sender, (rows, now) => planned(rows, sender, plan, now), ask);
        return came.value();
      },
      due: (request) => direct(() => due(backend, registrations, shared, request, last)),
      page: async (query) => {
        const of = listed(query);
        const found = await direct(() => registrations.list({ ...of, limit: of.limit + 1 }));
        const nameOf = ({ scope, id }: Row): { sender: string; id: string } => ({ sender: scope.sender, id });
        return pageOf(found, of, rowOf, nameOf, shared.clock.now());
      },
    },
  };
}

/** Queries due rows of registrations, and returns those that this call has reserved before any other call. */
async function due(
  backend: Backend,
  registrations: NonNullable<Backend['registrations']>,
  shared: Shared,
  { kind, max, holdMs, senders }: RegistrationDueRequest,
  last: Partial<Record<RegistrationKind, string>>,
): Promise<RegistrationDueResult> {
  const since = performance.now();
  const found = await registrations.due({
    kind,
    max: bounded(max),
    longestMs: longestTurnMs(kind),
    senders,
    after: last[kind] ?? '',
  });
  shared.clock.seen(found.now, since);
  last[kind] = found.rows.at(-1)?.scope.sender ?? last[kind] ?? '';
  const groups = foundGroups(found.rows, backend);
  const claims = found.rows.map((row) => {
    const { sender } = row.scope;
    const name = { kind, sender, id: idOf(row) };
    return new Promise<RegistrationRow | undefined>((resolve, reject) => {
      const plan: Plan<RegistrationRow | undefined> = (rows, now) => held(rows, name, holdMs, now);
      groups.get(backend.bySender ? sender : '')?.requests.push(queuedPlan(plan, READING, resolve, reject));
    });
  });
  for (const { rows, requests } of groups.values()) {
    const result = { ...found, rows, counts: [], nonces: undefined };
    void runJobs(requests, backend, shared, { result, since });
  }
  // A row that could not be reserved now is found again later. So an error is thrown only if no row was reserved.
  const settled = await Promise.allSettled(claims);
  const rows = settled.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed && rows.length === 0) throw failed.reason;
  const next = Math.min(
    found.nextDueMs ?? Infinity,
    found.rows.length > 0 ? Math.max(1, Math.ceil(holdMs)) : Infinity,
  );
  return { rows, ...(next !== Infinity && { nextDueMs: next }) };
}
