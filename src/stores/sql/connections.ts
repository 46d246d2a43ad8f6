// Takes connections out of a user's pool, and leaves those behind whose server cannot write (admission.md §9.3).
// Called by the Postgres and MySQL backends.
import { isError } from '../../shared/realms.ts';

/** The connections of the user's pool. */
export interface Connections<C> {
  /** The most connections that the pool has. */
  readonly max: number;
  readonly checkOut: () => Promise<C>;
  /**
   * Gives a connection back. @param error closes the connection, unless it is the server's answer to a statement that
   * it can run.
   */
  readonly giveBack: (connection: C, error?: unknown) => void;
  /** True if the pool made the connection after `since` (`performance.now()`). One of unknown age counts as older. */
  readonly isNewer: (connection: C, since: number) => boolean;
  /** True if the error says that the server cannot write: it is a standby, or was made read-only. */
  readonly isReadOnly: (error: unknown) => boolean;
}

const CANNOT_WRITE = new Error('the server cannot write');

/**
 * Uses a connection. One whose server cannot write is closed: after a failover, connections made before it lead to the
 * demoted server as long as they live. Then another one is taken, until one that the pool has just made says the same.
 * Nothing was written by then.
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

/** The depth to which causes of errors are followed, e.g. those of query builders. */
const MOST_CAUSES = 8;

/** Yields the error and its causes. */
export function* causesOf(error: unknown): Iterable<Error> {
  let one = error;
  for (let depth = 0; depth < MOST_CAUSES && isError(one); depth += 1) {
    yield one;
    one = one.cause;
  }
}
