/** Something that has its time. */
export interface Timed {
  /** Unix ms. */
  readonly at: number;
  /** Decides between two of the same time: the smaller one comes first. 0 where absent. */
  readonly serial?: number;
}

/** Rows that expire, by key. */
export interface ExpiringTable {
  /** When the row is to go, Unix ms; null: never; undefined: there is none. */
  readonly expiresAt: (key: string) => number | null | undefined;
  readonly forget: (key: string) => void;
}

/** A row to look at when its time has come: it may be gone by then, or live longer. */
export interface Expiry extends Timed {
  readonly table: ExpiringTable;
  readonly key: string;
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

/**
 * Notes when a row is to be looked at. A row that lives longer than before is in the queue already: it is put back
 * when its first time comes, so that an update costs nothing.
 * @param before of the row in whose place it comes; undefined where there was none.
 */
export function noteExpiry(
  queue: ExpiryQueue,
  table: ExpiringTable,
  key: string,
  before: number | null | undefined,
  after: number | null,
): void {
  if (after === null) return;
  if (before === undefined || before === null || after < before) push(queue, { at: after, table, key });
}

/** Forgets what has expired, of at most so many rows whose time seems to have come. */
export function purge(queue: ExpiryQueue, now: number, atMost: number): void {
  for (let taken = 0; taken < atMost; taken += 1) {
    const due = takeDue(queue, now);
    if (due === undefined) return;
    const { table, key } = due;
    const at = table.expiresAt(key);
    if (at === undefined || at === null) continue;
    if (at <= now) table.forget(key);
    else push(queue, { at, table, key });
  }
}
