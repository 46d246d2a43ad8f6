// The public entry `proto-webhooks/sqlite`: a store in one file (admission.md §9.2).
// Called by users; each method runs a rule of `stores/rules` over the rows, inside the transaction that writes them.
/**
 * SQLite runs the rules itself, and not as a `Backend` like the other databases, which was slower. Both ways were
 * measured in turns, in processor time for each event, in 12 pairs.
 *
 * Inline, a `Backend` reaches 0.97 to 1.00 of today's rate with 64 callers, and 0.70 (memory) to 0.89 (disk) with one
 * caller. In mode inbox it reaches 0.47 to 0.80, with 2.3 times as many commits, those of `accept` not counted. The
 * cause is that a lease reads its rows before its transaction, and unpacks them to decide. No line was saved.
 * `ctx.transaction` is synchronous here, so a `Backend` would need a second, synchronous way to run the rules. The
 * memory store needs rules over rows anyway.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../shared/errors.ts';
import type { Store, StoreOptions, CompleteRequest } from './store.ts';
import { type State, stateOf } from './optimistic/clock-and-rows.ts';
import { accept } from './rules/accept-rules.ts';
import { inboxOf } from './rules/claim.ts';
import { registrationsOf } from './rules/registration-rules.ts';
import type { Rows } from './rules/rule-rows.ts';
import { alive, complete, fail, peek, renew, heldBy, leaseLost } from './rules/settle-rules.ts';
import { type SqliteHandle, openFile, asFault } from './sqlite/handle.ts';
import { type BusyOptions, type OpenDatabase, openDatabase } from './sqlite/open.ts';
import type { SqliteRows } from './sqlite/sqlite-rows.ts';
import { stepWatch } from './step-watch.ts';
import { requireOptions } from './text.ts';

/**
 * Runs the caller's function and the completion of the event as one step, in a transaction of its own. The lease is
 * checked first, so that a process that was paused and lost its lease does not run the function. `complete` checks it
 * again, so that such a process does not commit either.
 */
function transactionStep<T>(
  db: SqliteHandle,
  rows: Rows,
  request: CompleteRequest,
  fn: (tx: unknown) => T | Promise<T>,
  now: () => number,
): T {
  if (!inStore(() => heldBy(rows, request, now()))) throw leaseLost();
  inStore(() => db.exec('SAVEPOINT webhook_fn'));
  const result = fn(db);
  if (isThenable(result)) {
    // The function returned a promise, so its work continues after the rollback. Later writes are not part of the
    // transaction. The promise's error is ignored, because nobody else handles it.
    Promise.resolve(result).catch(() => undefined);
    throw new ConfigError(
      'ctx.transaction: SQLite transactions are synchronous, but the function returned a promise; its writes were rolled back. ' +
        'Await what it needs first, then call ctx.transaction with a function that is not async.',
    );
  }
  checkStillOpen(db);
  if (inStore(() => complete(rows, request, now())) === 'lost') throw leaseLost();
  return result;
}

/**
 * Checks that `fn` has not ended the transaction. A COMMIT or ROLLBACK in `fn` also ends the savepoint. Then the writes
 * of `fn` would be committed or lost independently of the completion.
 */
function checkStillOpen(db: SqliteHandle): void {
  try {
    db.exec('RELEASE webhook_fn');
  } catch (error) {
    throw new ConfigError(
      'ctx.transaction: the function ended the transaction itself, so the event could not be completed with it. ' +
        'Leave out COMMIT and ROLLBACK: return to commit, throw to roll back.',
      { cause: error },
    );
  }
}

/**
 * Runs a step of the store and converts its error to a `Fault`. The caller's function runs outside, so an error of that
 * function is not converted.
 */
function inStore<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw asFault(error);
  }
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}

export type { SqliteHandle, SqliteStatement, SqliteValue } from './sqlite/handle.ts';

/** Options of `sqliteStore`: the wait for a locked database, and functions that tests replace. */
export interface SqliteStoreOptions extends StoreOptions {
  /**
   * The longest wait for another connection's lock, ms. After it an operation fails with `store_unavailable`. Default:
   * 2 000.
   */
  readonly busyMs?: number;
  /** Waits for `ms` between two tries to get the lock. Default: `setTimeout`. Replace it in tests. */
  readonly delay?: (ms: number) => Promise<void>;
  /** Returns a number in [0, 1) that spreads the tries of several processes. Default: `Math.random`. */
  readonly random?: () => number;
}

/**
 * A store in an SQLite file, made by `sqliteStore`. It works in both modes (`inline` and `inbox`). In a handler,
 * `ctx.transaction(fn)` passes the connection to `fn`, which must be synchronous.
 */
export type SqliteStore<Handle = SqliteHandle> = Store<Handle> &
  Required<Pick<Store<Handle>, 'transaction' | 'inbox' | 'registrations' | typeof Symbol.asyncDispose>>;

/**
 * Creates a store in one SQLite file, for any number of processes on one machine. Its durability is `disk`: answered
 * events survive a power failure.
 *
 * The import itself throws a ConfigError if the runtime has no `node:sqlite` (Node before 22.13).
 * @param fileOrHandle the path of the database, or a `DatabaseSync` of `node:sqlite`. The caller closes a handle.
 *   The store sets WAL, `synchronous=FULL`, a checkpoint every 4 000 pages (a WAL of some 16 MiB) and no busy
 *   timeout. `:memory:` and files on tmpfs or ramfs work, with durability `process`.
 * @throws ConfigError from `open()` if the database cannot be used, or was made by a newer version.
 * @example
 * ```ts
 * import { sqliteStore } from 'proto-webhooks/sqlite';
 *
 * const store = sqliteStore('/var/lib/buyer/webhooks.db');
 * await store.open();
 * console.log(await store.durability()); // disk
 * ```
 */
export function sqliteStore<Handle extends SqliteHandle = SqliteHandle>(
  fileOrHandle: string | Handle,
  options: SqliteStoreOptions = {},
): SqliteStore<Handle> {
  requireDatabase(fileOrHandle);
  requireOptions('sqliteStore', options, OPTION_NAMES);
  const { clockOffsetMs = () => 0, busyMs = 2000, random = Math.random, delay = waitMs } = options;
  const watch = stepWatch();
  const now = (): number => {
    const at = Date.now() + clockOffsetMs();
    watch.seen(at);
    return at;
  };
  const connection = connectionOf(fileOrHandle, { busyMs, random, delay });
  const step = async <T>(run: (rows: SqliteRows, now: number) => T): Promise<T> => {
    const { rows, commits } = connection.current();
    return commits.run(() => run(rows, now()));
  };
  return {
    name: 'sqlite',
    open: connection.open,
    durability: async () => connection.current().durability(),
    identity: async () => connection.current().identity(),
    accept: (request) => step((rows, now) => watch.told(accept(rows, request, now))),
    complete: (request) => step((rows, now) => complete(rows, request, now)),
    fail: (request) => step((rows, now) => fail(rows, request, now)),
    renew: (request) => step((rows, now) => renew(rows, request, now)),
    alive: (request) => step((rows, now) => alive(rows, request, now)),
    peek: (sender, key) => step((rows, now) => peek(rows, sender, key, now)),
    transaction: async (request, fn) => {
      const { db, rows, commits } = connection.current();
      // The cast is safe: `tx` is the handle that the caller passed in, or else the store's own connection.
      return commits.runAlone(() => transactionStep(db, rows, request, (tx) => fn(tx as Handle), now));
    },
    inbox: inboxOf(step, watch),
    registrations: registrationsOf(step),
    close: connection.close,
    [Symbol.asyncDispose]: connection.close,
  };
}

const OPTION_NAMES: Readonly<Record<keyof SqliteStoreOptions, true>> = {
  busyMs: true,
  delay: true,
  random: true,
  clockOffsetMs: true,
};

function requireDatabase(database: unknown): void {
  const { prepare, exec } = (database ?? {}) as Partial<SqliteHandle>;
  if (typeof database === 'string' || (prepare && exec)) return;
  throw new ConfigError(
    "sqliteStore: give the path of a database, sqliteStore('webhooks.db'), or an open handle of one.",
  );
}

const WITHOUT_FILE: ReadonlySet<string> = new Set([':memory:', '']);

interface SqliteConnection extends Pick<State, 'open'> {
  /**
   * Returns the open database.
   *
   * @throws Fault `store_unavailable` before `open` and after `close`.
   */
  readonly current: () => OpenDatabase;
  readonly close: () => Promise<void>;
}

function connectionOf(fileOrHandle: string | SqliteHandle, options: BusyOptions): SqliteConnection {
  // A handle that was passed in is closed by its owner. A database without a file (`:memory:`) is lost with its
  // connection, so that connection stays open and is used again.
  const isFile = typeof fileOrHandle === 'string' && !WITHOUT_FILE.has(fileOrHandle);
  let only: SqliteHandle | undefined;
  const connect = (): SqliteHandle => {
    if (typeof fileOrHandle !== 'string') return fileOrHandle;
    return isFile ? openFile(fileOrHandle) : (only ??= openFile(fileOrHandle));
  };
  const release = (db: SqliteHandle): void => {
    if (isFile) db.close();
  };
  let opened: OpenDatabase | undefined;
  const state = stateOf({
    name: 'SQLite',
    open: async () => {
      opened = await openDatabase(connect, release, options);
    },
    close: async () => {
      if (opened) release(opened.db);
    },
  });
  return {
    open: state.open,
    current: () => {
      state.check();
      return opened as OpenDatabase;
    },
    close: () => state.close(async () => opened?.commits.idle()),
  };
}

async function waitMs(ms: number): Promise<void> {
  await sleep(ms);
}
