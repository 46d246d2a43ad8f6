// Retries of rolled-back statements, time limits, and `ctx.transaction` on a connection of the pool (admission.md
// §2.16, §9.3).
// Called by sql-backend.ts, and by the clients and sessions of Postgres and MySQL.
import { Fault } from '../../shared/errors.ts';
import { orLate, sleep } from '../../shared/time-limits.ts';
import type { Within } from '../backend.ts';

/**
 * The largest number of tries of a statement that the server rolls back because of other transactions, and the average
 * first pause.
 */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

/** The conditions for repeating a transaction that the server rolled back because of other transactions. */
interface Retries {
  readonly isRetryable: (error: unknown) => boolean;
  /** Returns a number that is at least 0 and below 1. It spreads the retries of several processes. */
  readonly random: () => number;
  /** The time after which no further try is made. Ms. */
  readonly forMs?: number;
}

/**
 * Runs `attempt`, and repeats it while its error is retryable.
 *
 * @throws the error of the last try.
 */
export async function retried<T>(
  attempt: () => Promise<T>,
  { isRetryable, random, forMs = Infinity }: Retries,
): Promise<T> {
  const since = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || tries >= MOST_TRIES || performance.now() - since >= forMs) throw error;
      await sleep(FIRST_PAUSE_MS * 2 ** tries * random());
    }
  }
}

/** Limits the number of functions that run at the same time. Further functions wait in the order of their arrival. */
interface Slots {
  /**
   * Runs `work` when the number of running functions allows it.
   *
   * @param over ends the wait with its reason if it aborts first; it does not end `work`.
   */
  run<T>(work: () => Promise<T>, over?: AbortSignal): Promise<T>;
  /** Resolves when nothing runs and nothing waits. */
  idle(): Promise<void>;
}

export function slotsOf(most: number): Slots {
  const waiting: (() => void)[] = [];
  const idlers: (() => void)[] = [];
  let running = 0;
  const wait = (over: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiting.splice(waiting.indexOf(enter), 1);
        reject(over?.reason);
      };
      const enter = (): void => {
        over?.removeEventListener('abort', giveUp);
        resolve();
      };
      waiting.push(enter);
      over?.addEventListener('abort', giveUp, { once: true });
    });
  const leave = (): void => {
    const next = waiting.shift();
    // The place of the ended function goes directly to the next waiting caller, so that a caller who comes now cannot
    // take it.
    if (next) next();
    else running -= 1;
    if (running === 0) for (const resolve of idlers.splice(0)) resolve();
  };
  return {
    run: async (work, over) => {
      over?.throwIfAborted();
      if (running >= most) await wait(over);
      else running += 1;
      try {
        return await work();
      } finally {
        leave();
      }
    },
    idle: async () => {
      if (running > 0) await new Promise<void>((resolve) => idlers.push(resolve));
    },
  };
}

/**
 * Waits for a promise, up to a time limit. A value that comes after the limit is passed to `late`.
 *
 * @param what names the work for the message, e.g. `Postgres: a statement`.
 * @throws Fault `store_unavailable` at the time limit.
 */
export function within<T>(
  running: Promise<T>,
  ms: number,
  what: string,
  late: (value: T) => void = () => undefined,
): Promise<T> {
  let isLate = false;
  const passOn = async (): Promise<void> => {
    const value = await running;
    if (isLate) late(value);
  };
  passOn().catch(() => undefined);
  return orLate(running, ms, () => {
    isLate = true;
    return new Fault('store_unavailable', `${what} took longer than ${ms} ms.`);
  });
}

/** Runs one statement with its parameters, and returns its result. */
export type Query<R> = (text: string, values: readonly unknown[]) => Promise<R>;

/** The database client that `ctx.transaction` passes to its function, and the function that ends its use. */
interface HandedOut<C> {
  readonly tx: C;
  /** Makes every further call of `tx` fail, because other callers get the connection from now on. */
  readonly revoke: () => void;
}

/** The public `code` of the error for a use of the client after its transaction; it never changes. */
const CODE = 'transaction_over';

const lateUse = (): Error =>
  Object.assign(
    new Error(
      'ctx.transaction: its client was used after the transaction had ended; nothing was written. Await each query in the function.',
    ),
    { code: CODE },
  );

/**
 * The asynchronous methods of clients. After the transaction they fail by a rejected promise or their callback. All
 * other methods throw.
 */
const ASYNC: ReadonlySet<PropertyKey> = new Set(['query', 'execute']);

/**
 * Wraps the client so that it works only during the transaction. A call that was not awaited may come when the
 * connection is already in another event's transaction.
 *
 * @param onLateUse receives the error of each such call.
 */
function handOut<C extends object>(client: C, onLateUse: (error: Error) => void): HandedOut<C> {
  let isOver = false;
  const refuse = (name: PropertyKey, args: readonly unknown[]): unknown => {
    const error = lateUse();
    onLateUse(error);
    const callback = args.at(-1);
    if (!ASYNC.has(name)) throw error;
    if (typeof callback === 'function') {
      queueMicrotask(() => void Reflect.apply(callback, undefined, [error]));
      return undefined;
    }
    const refused = Promise.reject(error);
    // Without this handler, a rejection that the user does not handle would end the process.
    refused.catch(() => undefined);
    return refused;
  };
  const tx: C = new Proxy(client, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (isOver) return refuse(name, args);
        if (name === 'release') throw new Error(RELEASED);
        const result: unknown = Reflect.apply(member, target, args);
        return result === target ? tx : result;
      };
    },
  });
  return {
    tx,
    revoke: () => {
      isOver = true;
    },
  };
}

const RELEASED =
  'ctx.transaction: the function released its client, which the transaction still needs. Leave it out: it is given back at the end.';

/**
 * Begins and ends transactions on connections of a pool. The methods reject with the errors that callers of the store
 * see.
 */
export interface Sessions<Tx extends object, R> {
  checkOut(): Promise<Tx>;
  /**
   * Begins a transaction.
   *
   * @param idleMs the time after which the server rolls back if no statement comes; 0: the server's own setting.
   * @returns a text that identifies the transaction. A commit checks that this same transaction is still open.
   */
  begin(tx: Tx, idleMs: number): Promise<string>;
  readonly queryOn: (tx: Tx) => Query<R>;
  commit(tx: Tx): Promise<void>;
  rollBack(tx: Tx): Promise<void>;
  /**
   * Returns the connection to the pool.
   *
   * @param error closes the connection, unless the error is the server's answer to a statement.
   */
  giveBack(tx: Tx, error?: unknown): void;
  /**
   * Returns a Fault `store_unavailable` if the error or its cause says that the server cannot write. Such an error must
   * not count as a failed run of the event.
   */
  readOnly(error: unknown): Error | undefined;
}

interface TransactionParts<Tx extends object, R> {
  readonly sessions: Sessions<Tx, R>;
  /** Resolves when the schema is known to have this package's version. */
  readonly known: () => Promise<void> | undefined;
  /** Makes the backend's operations for one connection. `started`: the result of `begin`. */
  readonly withinOf: (query: Query<R>, started: string) => Within;
  readonly idleMs: number;
  /** Receives the error of each use of the connection after the transaction. */
  readonly onLateUse: (error: Error) => void;
}

/**
 * Runs the user's writes and the completion of the event in one transaction, on a connection of its own.
 *
 * The lease is checked first, so that a process that was paused does not begin. It is checked again by the last
 * statement before COMMIT, which completes the event. In between the lease can be renewed, because no row of the store
 * is locked.
 *
 * @param over if it aborts, a function that has not ended is abandoned, and its connection is closed. The function may
 *   still write on that connection, so nobody else may receive it.
 * @throws the error of `work`, after a rollback; the error of the user's deferred constraints. Fault
 *   `store_unavailable` if the connection breaks. If it breaks at COMMIT, the outcome is unknown, and can be read from
 *   the record.
 */
export async function runTransaction<Tx extends object, R, T>(
  { sessions, known, withinOf, idleMs, onLateUse }: TransactionParts<Tx, R>,
  work: (tx: Tx, within: Within) => Promise<T>,
  over?: AbortSignal,
): Promise<T> {
  await known();
  const client = await sessions.checkOut();
  const { tx, revoke } = handOut(client, onLateUse);
  try {
    const started = await sessions.begin(client, idleMs);
    const value = await work(tx, withinOf(sessions.queryOn(client), started));
    revoke();
    await sessions.commit(client);
    sessions.giveBack(client);
    return value;
  } catch (error) {
    revoke();
    const readOnly = sessions.readOnly(error);
    const left = over?.aborted === true && error === over.reason;
    // If the connection is closed, the server rolls back by itself. ROLLBACK is sent only on a connection that may be
    // kept.
    sessions.giveBack(client, left || readOnly ? error : await failureOf(sessions.rollBack(client)));
    throw readOnly ?? error;
  }
}

async function failureOf(ending: Promise<void>): Promise<unknown> {
  try {
    await ending;
    return undefined;
  } catch (error) {
    return error;
  }
}
