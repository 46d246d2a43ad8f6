// Takes connections from a user's pool, and closes those whose server cannot write (admission.md §9.3).
// Called by the Postgres and MySQL backends.
import { isError } from '../../shared/realms.ts';

/** The connections of the user's pool. */
export interface Connections<C> {
  /** The largest number of connections in the pool. */
  readonly max: number;
  readonly checkOut: () => Promise<C>;
  /**
   * Returns a connection to the pool.
   *
   * @param error closes the connection, unless the error is the server's answer to a statement and leaves it usable.
   */
  readonly giveBack: (connection: C, error?: unknown) => void;
  /**
   * True if the pool made the connection after `since` (`performance.now()`). False if the connection's age is
   * unknown.
   */
  readonly isNewer: (connection: C, since: number) => boolean;
  /** True if the error says that the server cannot write: it is a standby, or was made read-only. */
  readonly isReadOnly: (error: unknown) => boolean;
}

const CANNOT_WRITE = new Error('the server cannot write');

/**
 * Runs `use` on a connection. A connection whose server cannot write is closed, and `use` runs on another one: after a
 * failover, older connections lead to the demoted server. The loop ends when even a connection that the pool has just
 * made cannot write. `use` may be repeated, because a server that cannot write has written nothing.
 *
 * @param cannotWrite true for an answer that says that its server cannot write.
 */
export async function onConnection<C, T>(
  { max, checkOut, giveBack, isNewer, isReadOnly }: Connections<C>,
  use: (connection: C) => Promise<T>,
  cannotWrite: (answer: T) => boolean = () => false,
): Promise<T> {
  for (let left = max; ; left -= 1) {
    const since = performance.now();
    const connection = await checkOut();
    const isLast = left === 0 || isNewer(connection, since);
    try {
      const answer = await use(connection);
      const isStale = cannotWrite(answer);
      giveBack(connection, isStale ? CANNOT_WRITE : undefined);
      if (!isStale || isLast) return answer;
    } catch (error) {
      giveBack(connection, error);
      if (isLast || !isReadOnly(error)) throw error;
    }
  }
}

/** The times at which a pool made its connections, by `performance.now()`. */
export type MadeAt = WeakMap<object, number>;

/**
 * The largest number of causes of an error that are examined. A query builder, e.g., wraps the driver's error in its
 * own.
 */
const MOST_CAUSES = 8;

/** Yields the error, its cause, the cause of that cause, and so on. */
export function* causesOf(error: unknown): Iterable<Error> {
  let one = error;
  for (let depth = 0; depth < MOST_CAUSES && isError(one); depth += 1) {
    yield one;
    one = one.cause;
  }
}
