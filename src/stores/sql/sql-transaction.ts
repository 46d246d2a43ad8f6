import { Fault } from '../../shared/errors.ts';
import { orLate, sleep } from '../../shared/time-limits.ts';
import type { Within } from '../backend.ts';

/** Tries of a transaction that the server rolls back because of others, and the first pause between them. */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

/** What was rolled back because of others is made again. */
interface Retries {
  readonly isRetryable: (error: unknown) => boolean;
  /** 0 ≤ n < 1. */
  readonly random: () => number;
  /** After so long nothing is tried again. Ms. */
  readonly forMs?: number;
}

/** @throws what the last try threw. */
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

/** At most so many at once; the others wait, first come first served. */
interface Slots {
  /** @param over ends the wait, with its reason; not the work. */
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
 * Waits for at most so long. What comes later goes to `late`.
 * @param what took longer, and whose, e.g. `Postgres: a statement`.
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

/** One statement with its parameters, and what it answers. */
export type Query<R> = (text: string, values: readonly unknown[]) => Promise<R>;

/** What `ctx.transaction` hands to its function. */
interface HandedOut<C> {
  readonly tx: C;
  /** From now on each call is refused: the connection serves others. */
  readonly revoke: () => void;
}

/** Stable. */
const CODE = 'transaction_over';

const lateUse = (): Error =>
  Object.assign(
    new Error(
      'ctx.transaction: its client was used after the transaction had ended; nothing was written. Await each query in the function.',
    ),
    { code: CODE },
  );

/** Methods of clients that answer later: what they are refused with too. */
const ASYNC: ReadonlySet<PropertyKey> = new Set(['query', 'execute']);

/**
 * The client, as long as the transaction lasts. What was not awaited comes later, when the connection may be in another
 * event's transaction.
 * @param onLateUse told of each call that was refused.
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
    // Nobody may be listening, and that would end the process.
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

/** How transactions are run on connections of a pool. What is thrown here callers see. */
export interface Sessions<Tx extends object, R> {
  checkOut(): Promise<Tx>;
  /**
   * @param idleMs how long the server waits for the next statement before it rolls back; 0: as it is set up.
   * @returns what it goes by that the transaction is still the one that was begun.
   */
  begin(tx: Tx, idleMs: number): Promise<string>;
  readonly queryOn: (tx: Tx) => Query<R>;
  commit(tx: Tx): Promise<void>;
  rollBack(tx: Tx): Promise<void>;
  /** @param error after it the connection is of no more use, unless it is the server's word on a statement. */
  giveBack(tx: Tx, error?: unknown): void;
  /** Fault `store_unavailable` where the error, or its cause, says that the server cannot write: no event's doing. */
  readOnly(error: unknown): Error | undefined;
}

interface TransactionParts<Tx extends object, R> {
  readonly sessions: Sessions<Tx, R>;
  /** Resolves when the schema is known to be this package's. */
  readonly known: () => Promise<void> | undefined;
  /** The port on one connection. `started`: what `begin` said. */
  readonly withinOf: (query: Query<R>, started: string) => Within;
  readonly idleMs: number;
  /** Told of each use of the connection after the end. */
  readonly onLateUse: (error: Error) => void;
}

/**
 * The owner's writes and the completion in one transaction of a connection of its own. The lease is looked at before (a
 * paused process must not begin) and decides at the end, by the compare-and-set that is the last statement before
 * COMMIT; in between it is renewed by others, and nothing of the store's is locked.
 * @param over a function that has not ended when it aborts is left alone, and its connection closed: it may go on
 *   writing on it, and nobody else may get those writes.
 * @throws what `work` throws, rolled back; Fault `store_unavailable` where the connection breaks, at COMMIT with unknown
 *   outcome: then the record says what happened; what the owner's deferred constraints say.
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
    // The server rolls back what a connection that is closed leaves.
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
