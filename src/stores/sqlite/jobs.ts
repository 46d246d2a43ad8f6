/** A step that waits for its transaction. */
export interface Job {
  readonly alone: boolean;
  readonly step: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  waitedMs: number;
  /** The transaction that it is in ends with it. */
  isLast: boolean;
}

/** Steps in one transaction: bounds how long the synchronous driver keeps the event loop. */
const MOST = 128;

/** How many of those that wait share the next transaction. */
export function sharing(queue: readonly Job[]): number {
  let count = 0;
  for (const { alone, isLast } of queue) {
    if (alone || count === MOST) break;
    count += 1;
    if (isLast) break;
  }
  return count;
}
