/** Something to look at when its time has come; whoever takes it checks whether it still holds. */
export interface Expiry {
  /** Unix ms. */
  readonly at: number;
  readonly drop: () => void;
}

/**
 * A binary min-heap by `at`: finding what has expired costs nothing where nothing has, so that an accept never
 * scans. A plain array, so that two handles on one state share it.
 */
export type ExpiryQueue = Expiry[];

export function pushExpiry(queue: ExpiryQueue, expiry: Expiry): void {
  let at = queue.push(expiry) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = queue[above];
    if (parent === undefined || parent.at <= expiry.at) break;
    queue[at] = parent;
    at = above;
  }
  queue[at] = expiry;
}

/** Removes and returns the earliest one, where its time has come. */
export function takeExpired(queue: ExpiryQueue, now: number): Expiry | undefined {
  const first = queue[0];
  if (first === undefined || first.at > now) return undefined;
  const last = queue.pop();
  if (last !== undefined && last !== first) sink(queue, last);
  return first;
}

function sink(queue: ExpiryQueue, moved: Expiry): void {
  let at = 0;
  for (;;) {
    const left = queue[2 * at + 1];
    const right = queue[2 * at + 2];
    const useRight = left !== undefined && right !== undefined && right.at < left.at;
    const child = useRight ? right : left;
    if (child === undefined || child.at >= moved.at) break;
    queue[at] = child;
    at = 2 * at + (useRight ? 2 : 1);
  }
  queue[at] = moved;
}
