import { isError } from '../../shared/realms.ts';

/** Connections of the owner's pool. */
export interface Connections<C> {
  /** Most that the pool has. */
  readonly max: number;
  readonly checkOut: () => Promise<C>;
  /** @param error after it the connection is closed, unless it is the server's word on a statement that it can run. */
  readonly giveBack: (connection: C, error?: unknown) => void;
  /** Whether the pool made it after `since` (`performance.now()`). One that it knows nothing of counts as older. */
  readonly isNewer: (connection: C, since: number) => boolean;
  /** Whether the server says that it cannot write: a standby, or one that was made read-only. */
  readonly isReadOnly: (error: unknown) => boolean;
}

const CANNOT_WRITE = new Error('the server cannot write');

/**
 * Uses a connection. One whose server cannot write is closed, for after a failover those that were made before it lead
 * to the demoted server as long as they live; then the pool is asked for another one, until one that it has just made
 * says the same: nothing was written.
 * @param cannotWrite whether an answer says of its server that it cannot write.
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

/** When a pool made its connections, by `performance.now()`. */
export type MadeAt = WeakMap<object, number>;

/** Errors that have others as their cause, as those of query builders have, are looked into so deep. */
const MOST_CAUSES = 8;

/** The error, and those that are its cause. */
export function* causesOf(error: unknown): Iterable<Error> {
  let one = error;
  for (let depth = 0; depth < MOST_CAUSES && isError(one); depth += 1) {
    yield one;
    one = one.cause;
  }
}
