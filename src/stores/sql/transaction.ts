import type { Within } from '../backend.ts';
import type { Query } from './backend.ts';
import { handOut } from './handed-out.ts';

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
}

export interface TransactionParts<Tx extends object, R> {
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
    const left = over?.aborted === true && error === over.reason;
    sessions.giveBack(client, left ? error : await failureOf(sessions.rollBack(client)));
    throw error;
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
