// The parts of a `Backend` that SQL databases share: durability, ids of scopes, retries, transactions (admission.md
// §7.3, §9.3, §9.6).
// Called by the Postgres and MySQL backends, which supply the statements (`Calls`) and the pool.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type {
  Backend,
  CommitRequest,
  CommitResult,
  DueRequest,
  DueResult,
  ListCount,
  ListRequest,
  LoadRequest,
  LoadResult,
  Row,
  Scope,
  TurnRequest,
  Within,
} from '../backend.ts';
import type { Durability, InboxQuery, StoreIdentity } from '../store.ts';
import { isLess } from '../durability.ts';
import { scopeName } from '../optimistic/row-data.ts';
import { turnIn } from '../optimistic/commit-unit.ts';
import { whileRunning, lookAgain } from '../schema-version.ts';
import { scopeColumns, type ScopeIds, scopesIn } from './row-lines.ts';
import { retried, slotsOf, runTransaction, type Sessions, type Query } from './sql-transaction.ts';

/**
 * Judges the durability of each commit. A commit with less than the required durability fails. A commit that has
 * enough, but less than the server's settings gave (`found`), is reported to the listeners.
 */
interface Keeping {
  readonly keep: (required: Durability, lowered: (message: string) => void) => void;
  /** Remembers the durability that was read from the server's settings. */
  readonly found: (level: Durability) => void;
  /**
   * Judges a commit by the settings under which it ran; `settings` names them for a message.
   *
   * @throws Fault `not_durable` if its durability is less than required.
   */
  readonly judge: (level: Durability, settings: () => string) => void;
}

/**
 * Makes the object that judges the durability of commits.
 *
 * @param who the database's name for messages, e.g. `Postgres`.
 */
function keepingOf(who: string): Keeping {
  const listeners = new Set<(message: string) => void>();
  let required: Durability = 'process';
  let found: Durability = 'process';
  return {
    keep: (level, lowered) => {
      if (isLess(required, level)) required = level;
      listeners.add(lowered);
    },
    found: (level) => {
      found = level;
    },
    judge: (level, settings) => {
      if (!isLess(level, found) && !isLess(level, required)) return;
      const message = `${who}: a commit now survives no more than '${level}': ${settings()}. Restore these settings.`;
      if (isLess(level, required)) throw new Fault('not_durable', message);
      for (const lowered of listeners) lowered(message);
    },
  };
}

/** The largest number of ids of scopes that are remembered. Above it all ids are forgotten, and looked up again. */
const MOST = 20_000;

interface Scopes extends ScopeIds {
  /**
   * Looks up ids of scopes. Until the promise resolves, `idOf` may lack some. Undefined if all ids are known already.
   */
  readonly know: (scopes: Iterable<Scope>) => Promise<void> | undefined;
  /**
   * Forgets all ids. Called when the store is opened, because the schema may have been created anew, with other ids.
   */
  readonly forget: () => void;
}

/**
 * Remembers the database ids of scopes. An id never changes, so each is looked up once.
 *
 * @param ask returns the ids of scopes, and creates those that do not exist.
 */
function scopesOf(
  ask: (senders: readonly string[], keys: readonly string[]) => Promise<readonly number[]>,
): Scopes {
  const ids = new Map<string, number>();
  const scopes = new Map<number, Scope>();
  const learn = async (unknown: readonly Scope[]): Promise<void> => {
    const columns = unknown.map(scopeColumns);
    const found = await ask(
      columns.map(([sender]) => sender),
      columns.map(([, key]) => key),
    );
    if (ids.size > MOST) forget();
    for (const [at, scope] of unknown.entries()) {
      const id = found[at];
      if (id === undefined) continue;
      ids.set(scopeName(scope), id);
      scopes.set(id, scope);
    }
  };
  const forget = (): void => {
    ids.clear();
    scopes.clear();
  };
  return {
    idOf: (scope) => ids.get(scopeName(scope)) ?? -1,
    scopeOf: (id) => scopes.get(id),
    forget,
    know: (wanted) => {
      const unknown = new Map<string, Scope>();
      for (const scope of wanted) {
        const name = scopeName(scope);
        if (!ids.has(name)) unknown.set(name, scope);
      }
      return unknown.size > 0 ? learn([...unknown.values()]) : undefined;
    },
  };
}

/** The options that every backend on SQL tables has, besides its pool. */
export interface SqlOptions {
  readonly timeoutMs: number;
  /**
   * The time without a statement after which the server rolls back a transaction, ms. Default: the longer of the lease
   * and `LEAST_IDLE_MS`.
   */
  readonly idleInTransactionMs?: number | undefined;
  readonly clockOffsetMs: () => number;
  /**
   * Returns a number that is at least 0 and below 1. It spreads the retries of transactions that the server rolled
   * back.
   */
  readonly random: () => number;
}

/** The result of a commit, with its durability (`level`). */
interface Committed extends CommitResult {
  readonly level: Durability;
  /** Names the settings under which the commit ran, for a message. */
  readonly settings: () => string;
}

/** The operations on the tables, as each database implements them. */
export interface Calls {
  /**
   * Commits units (groups of row changes).
   *
   * @param started the result of `Sessions.begin` if the commit is part of the user's transaction; null if it makes its
   *   own.
   */
  commit(request: CommitRequest, ids: ScopeIds, started: string | null): Promise<Committed>;
  load(request: LoadRequest, ids: ScopeIds): Promise<LoadResult>;
  due(request: DueRequest, ids: ScopeIds): Promise<DueResult>;
  /**
   * Returns the rows of a page, and one row more if there is a next page. The `place` of a row is the cursor of a page
   * that begins after this row.
   */
  page(query: InboxQuery, ids: ScopeIds): Promise<readonly (Row & { readonly place: string })[]>;
  listCounts(): Promise<readonly ListCount[]>;
  overdueMs(): Promise<number | undefined>;
  /**
   * Returns due rows: one more than requested, if there is one more. `next` is the `Write.waitsFor` (due time as a
   * text) of the row that comes due next.
   */
  turns(
    request: TurnRequest,
  ): Promise<{ readonly now: number; readonly next: string | null; readonly rows: readonly Row[] }>;
  listed(request: ListRequest): Promise<readonly Row[]>;
  /**
   * Deletes expired rows of the scope with this id. 0: nonces of all senders. Negative: nonces of all key ids of the
   * sender with that id.
   */
  clear(scope: number, most: number): Promise<number>;
  identity(): Promise<StoreIdentity | undefined>;
  scopes(): Promise<readonly Scope[]>;
  /** Returns the database ids of scopes, and creates those that do not exist. */
  idsOf(senders: readonly string[], keys: readonly string[]): Promise<readonly number[]>;
}

/** The parts of a backend that each SQL database has to supply. */
interface SqlDatabase<Tx extends object, R> {
  readonly name: string;
  /** The database's name for messages, e.g. `Postgres`. */
  readonly who: string;
  /** The largest number of connections in the pool, and the pool's option that sets it. */
  readonly max: number;
  readonly maxOption: string;
  readonly once: Query<R>;
  readonly sessions: Sessions<Tx, R>;
  readonly callsOn: (ask: Query<R>, offset: () => number) => Calls;
  readonly clock: (offset: number) => Promise<number>;
  /**
   * Checks version, settings and rights of the database.
   *
   * @throws ConfigError with advice.
   */
  open(): Promise<void>;
  /**
   * Checks that the schema still has the version of this package.
   *
   * @throws ConfigError if it has another one.
   */
  look(): Promise<void>;
  durability(): Promise<Durability>;
  advice(): string;
  close(): void;
  readonly isRetryable: (error: unknown) => boolean;
  readonly isAboutOne: (error: unknown) => boolean;
  readonly asFault: (error: unknown) => Error;
  /**
   * Returns a ConfigError if the error means that the pool's settings name a wrong database, user or password.
   * Otherwise returns undefined.
   */
  readonly wronglyGiven: (error: unknown) => Error | undefined;
}

export type SqlBackend<Tx> = Backend<Tx> &
  Required<Pick<Backend<Tx>, 'transaction'>> & {
    /**
     * Returns all scopes in the database.
     *
     * @throws Fault if the database cannot be read, or its schema has another version by now.
     */
    readonly scopes: () => Promise<readonly Scope[]>;
  };

/**
 * The largest number of batches that run at the same time: one is prepared while another is written to disk. More are
 * not run, because the pool also serves the user's code.
 */
const LANES = 2;

/**
 * The least default of `idleInTransactionMs`. With less, a function that calls other services between its statements
 * would be taken for a frozen process. Ms: 30 s.
 */
const LEAST_IDLE_MS = 30_000;

/**
 * The share of `timeoutMs` for retries and for the server's waits for locks. So these end before the call's time limit.
 */
export const LOCK_SHARE = 0.75;

/** Makes the parts of a backend that all SQL databases share. The backend keeps no state in a database session. */
export function sqlBackend<Tx extends object, R>(
  database: SqlDatabase<Tx, R>,
  { timeoutMs, idleInTransactionMs, clockOffsetMs, random }: SqlOptions,
): SqlBackend<Tx> {
  const { name, who, max, once, isRetryable, asFault } = database;
  const offset = (): number => Math.trunc(clockOffsetMs());
  const retries = { isRetryable, random, forMs: timeoutMs * LOCK_SHARE };
  // The version is checked again from time to time, because another process may migrate the schema while this one runs.
  const known = lookAgain(
    async () => {
      try {
        await database.look();
      } catch (error) {
        throw asFault(whileRunning(error));
      }
    },
    () => performance.now() + clockOffsetMs(),
  );
  const ask: Query<R> = (text, values) => {
    const looking = known.passed();
    return looking ? looking.then(() => once(text, values)) : once(text, values);
  };
  const calls = database.callsOn(ask, offset);
  const scopes = scopesOf((senders, keys) => retried(() => calls.idsOf(senders, keys), retries));
  const slots = slotsOf(Math.max(1, max - 1));
  const keeping = keepingOf(who);

  const commit = async (on: Calls, request: CommitRequest, started: string | null): Promise<CommitResult> => {
    const learning = scopes.know(scopesIn(request));
    if (learning) await learning;
    const result = await on.commit(request, scopes, started);
    if (!result.isOld) keeping.judge(result.level, result.settings);
    return result;
  };
  const load = async (on: Calls, request: LoadRequest): Promise<LoadResult> => {
    const { rows, bodies, counts } = request;
    const learning = scopes.know([...[...rows, ...bodies].map(({ scope }) => scope), ...counts]);
    if (learning) await learning;
    return on.load(request, scopes);
  };
  const withinOf = (query: Query<R>, started: string): Within => {
    const on = database.callsOn(query, offset);
    return {
      commit: (request) => commit(on, request, started),
      load: (request) => load(on, request),
      sweep: async () => 0,
      isAboutOne: () => false,
    };
  };

  return {
    name,
    concurrency: Math.min(LANES, Math.max(1, max - 1)),
    bySender: false,
    timeoutMs,
    open: async () => {
      scopes.forget();
      try {
        await database.open();
      } catch (error) {
        throw database.wronglyGiven(error) ?? asFault(error);
      }
    },
    durability: async () => {
      const level = await database.durability();
      keeping.found(level);
      return level;
    },
    keepDurability: keeping.keep,
    identity: async () => {
      const identity = await calls.identity();
      if (identity) return identity;
      throw new ConfigError(
        `${name}Store: webhook_identity has no row. Restore it from a backup, or create the schema again.`,
      );
    },
    advice: () => database.advice(),
    clock: () => database.clock(offset()),
    commit: (request) => retried(() => commit(calls, request, null), retries),
    load: (request) => load(calls, request),
    due: (request) => retried(() => calls.due(request, scopes), retries),
    page: async (query) => {
      const rows = await calls.page(query, scopes);
      const page = { rows: rows.slice(0, query.limit) };
      const last = rows.length > query.limit ? page.rows.at(-1) : undefined;
      return last ? { ...page, next: last.place } : page;
    },
    listCounts: () => calls.listCounts(),
    overdueMs: () => calls.overdueMs(),
    registrations: {
      due: async (request) => {
        const { now, next, rows } = await calls.turns(request);
        const wait = next === null ? undefined : Math.max(0, turnIn(next) - now);
        const nextDueMs = rows.length > request.max ? 0 : wait;
        return { now, rows: rows.slice(0, request.max), nextDueMs };
      },
      list: (request) => calls.listed(request),
    },
    sweep: async (of, most) => {
      const isOfSender = of !== 'nonces' && 'noncesOf' in of;
      const scope = isOfSender ? { sender: of.noncesOf } : of;
      const learning = scope === 'nonces' ? undefined : scopes.know([scope]);
      if (learning) await learning;
      const id = scope === 'nonces' ? 0 : scopes.idOf(scope);
      return retried(() => calls.clear(isOfSender ? -id : id, most), retries);
    },
    scopes: async () => {
      try {
        return await calls.scopes();
      } catch (error) {
        throw asFault(error);
      }
    },
    transaction: async ({ leaseMs = 0, onLateUse = () => undefined }, work, over) => {
      if (max < 2) {
        throw new ConfigError(
          `ctx.transaction: the pool has one connection, which the transaction would keep from the store. Set its ${database.maxOption} to 2 or more.`,
        );
      }
      const idleMs = idleInTransactionMs ?? Math.max(Math.ceil(leaseMs), LEAST_IDLE_MS);
      const parts = { sessions: database.sessions, known: known.passed, withinOf, idleMs, onLateUse };
      return slots.run(() => runTransaction(parts, work, over), over);
    },
    isAboutOne: database.isAboutOne,
    asFault,
    close: async () => database.close(),
  };
}
