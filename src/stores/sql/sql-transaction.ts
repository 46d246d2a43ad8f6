// Retries of rolled-back statements, time limits, and `ctx.transaction` on a connection of the pool (admission.md §2.16, §9.3).
// Called by sql-backend.ts, and by the clients and sessions of Postgres and MySQL.
import { Fault } from '../../shared/errors.ts';
import { orLate, sleep } from '../../shared/time-limits.ts';
import type { Within } from '../backend.ts';

/** The most tries of a transaction that the server rolls back because of others, and the first pause between them. */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

/** The conditions under which a transaction that was rolled back because of others is made again. */
interface Retries {
  readonly isRetryable: (error: unknown) => boolean;
  /** Returns a number of at least 0 and below 1. */
  readonly random: () => number;
  /** The time after which nothing is tried again. Ms. */
  readonly forMs?: number;
}

/**
 * Runs an attempt, and again while its error is retryable.
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

/** Lets a number of works run at once; the others wait, first come first served. */
interface Slots {
  /** Runs work in a slot. @param over ends the wait, with its reason, but not the work. */
  run<T>(work: () => Promise<T>, over?: AbortSignal): Promise<T>;
  /** Resolves when nothing runs or waits. */
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
    // The slot goes from hand to hand: a caller that comes now cannot take it in between.
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
 * Waits for a promise up to a time limit. A value that comes later goes to `late`.
 *
 * @param what the work for the message, and whose, e.g. `Postgres: a statement`.
 * @throws Fault `store_unavailable` after that time.
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

/** Runs one statement with its parameters, and returns its answer. */
export type Query<R> = (text: string, values: readonly unknown[]) => Promise<R>;

/** The client that `ctx.transaction` passes to its function. */
interface HandedOut<C> {
  readonly tx: C;
  /** Refuses each further call: the connection serves others from now on. */
  readonly revoke: () => void;
}

/** The code of the error, which stays the same. */
const CODE = 'transaction_over';

const lateUse = (): Error =>
  Object.assign(
    new Error(
      'ctx.transaction: its client was used after the transaction had ended; nothing was written. Await each query in the function.',
    ),
    { code: CODE },
  );

/** The methods of clients that answer later. They are refused by a rejection or a callback too. */
const ASYNC: ReadonlySet<PropertyKey> = new Set(['query', 'execute']);

/**
 * Passes the client on, as long as the transaction lasts. A call that was not awaited may come later, when the
 * connection is in another event's transaction.
 *
 * @param onLateUse receives the error of each refused call.
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
    // Without a listener the rejection would end the process.
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

/** Runs transactions on connections of a pool. Callers see the errors of its methods. */
export interface Sessions<Tx extends object, R> {
  checkOut(): Promise<Tx>;
  /**
   * Begins a transaction.
   *
   * @param idleMs the time after which the server rolls back if no statement comes; 0: the server's own setting.
   * @returns the mark by which the transaction is known to be still the one that was begun.
   */
  begin(tx: Tx, idleMs: number): Promise<string>;
  readonly queryOn: (tx: Tx) => Query<R>;
  commit(tx: Tx): Promise<void>;
  rollBack(tx: Tx): Promise<void>;
  /** Gives the connection back. @param error closes it, unless it is the server's answer to a statement. */
  giveBack(tx: Tx, error?: unknown): void;
  /**
   * Returns a Fault `store_unavailable` if the error, or its cause, says that the server cannot write: that is no
   * event's doing.
   */
  readOnly(error: unknown): Error | undefined;
}

interface TransactionParts<Tx extends object, R> {
  readonly sessions: Sessions<Tx, R>;
  /** Resolves when the schema is known to be this package's. */
  readonly known: () => Promise<void> | undefined;
  /** Makes the backend on one connection. `started`: the answer of `begin`. */
  readonly withinOf: (query: Query<R>, started: string) => Within;
  readonly idleMs: number;
  /** Receives each use of the connection after the end. */
  readonly onLateUse: (error: Error) => void;
}

/**
 * Runs the user's writes and the completion in one transaction, on a connection of its own.
 *
 * The lease is checked before, so that a paused process does not begin. It decides at the end, by the compare-and-set
 * that is the last statement before COMMIT. In between others renew it, and no row of the store is locked.
 *
 * @param over if it aborts, a function that has not ended is left alone, and its connection is closed. The function may
 * still write on it, and nobody else may get those writes.
 * @throws the error of `work`, rolled back; the error of the user's deferred constraints. Fault `store_unavailable` if
 * the connection breaks: at COMMIT the outcome is unknown, and the record tells it.
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
    // The server rolls back the transaction of a closed connection.
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
