/** Something that has its time. */
export interface Timed {
  /** Unix ms. */
  readonly at: number;
  /** Decides between two of the same time: the smaller one comes first. 0 where absent. */
  readonly serial?: number;
}

/** Something to look at when its time has come; whoever takes it checks whether it still holds. */
export interface Expiry extends Timed {
  readonly drop: () => void;
}

/**
 * A binary min-heap by `at`: finding what has come costs nothing where nothing has, so that an accept never scans.
 * A plain array, so that two handles on one state share it.
 */
export type TimedQueue<T extends Timed> = T[];

export type ExpiryQueue = TimedQueue<Expiry>;

function isBefore(a: Timed, b: Timed): boolean {
  return a.at === b.at ? (a.serial ?? 0) < (b.serial ?? 0) : a.at < b.at;
}

export function push<T extends Timed>(queue: TimedQueue<T>, timed: T): void {
  let at = queue.push(timed) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = queue[above];
    if (parent === undefined || !isBefore(timed, parent)) break;
    queue[at] = parent;
    at = above;
  }
  queue[at] = timed;
}

/** Removes and returns the earliest one, where its time has come. */
export function takeDue<T extends Timed>(queue: TimedQueue<T>, now: number): T | undefined {
  const first = queue[0];
  if (first === undefined || first.at > now) return undefined;
  const last = queue.pop();
  if (last !== undefined && last !== first) sink(queue, last);
  return first;
}

function sink<T extends Timed>(queue: TimedQueue<T>, moved: T): void {
  let at = 0;
  for (;;) {
    const left = queue[2 * at + 1];
    const right = queue[2 * at + 2];
    const useRight = left !== undefined && right !== undefined && isBefore(right, left);
    const child = useRight ? right : left;
    if (child === undefined || !isBefore(child, moved)) break;
    queue[at] = child;
    at = 2 * at + (useRight ? 2 : 1);
  }
  queue[at] = moved;
}
