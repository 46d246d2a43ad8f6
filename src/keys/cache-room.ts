import { type CacheState, type Entry, isWithin, runningFetch } from './document.ts';

/** What a document that was read takes in memory, for each byte of its text: measured, the worst of its kinds. */
const HEAP_PER_BYTE = 6;

/** Looked at for each new document, least recently used first: so that many come and go without a look at all. */
const MAX_SWEPT = 32;

/** Ms for which a failure is remembered after its back-off, for the count of its alarm. */
const FAILURE_KEPT_MS = 10 * 60_000;

/** Takes a document out. */
export function dropEntry(state: CacheState, key: string): void {
  state.heldBytes -= state.entries.get(key)?.heldBytes ?? 0;
  state.entries.delete(key);
}

/** Notes what a copy that was just kept takes, and drops the least recently used ones above the bound. */
export function noteSize(state: CacheState, key: string, entry: Entry<unknown>, bytes: number): void {
  // Dropped while it was fetched: it is held by who waits for it alone.
  if (state.entries.get(key) !== entry) return;
  const held = bytes * HEAP_PER_BYTE;
  state.heldBytes += held - entry.heldBytes;
  entry.heldBytes = held;
  makeRoom(state, entry);
}

/** Drops the least recently used documents above the bound, which is at least half of what the owner set. */
function makeRoom(state: CacheState, keeping?: Entry<unknown>): void {
  const { maxBytes = Number.POSITIVE_INFINITY } = state.options.limits;
  const room = Math.max(maxBytes - state.reservedBytes, maxBytes / 2);
  for (const [oldest, other] of state.entries) {
    if (state.heldBytes <= room) return;
    if (other !== keeping && runningFetch(state.options, other) === undefined) dropEntry(state, oldest);
  }
}

/** Notes what is held of a document beside the cache, and cannot be dropped. @param bytes 0: nothing any more. */
export function reserve(state: CacheState, key: string, bytes: number): void {
  state.reservedBytes += bytes - (state.reserved.get(key) ?? 0);
  if (bytes === 0) state.reserved.delete(key);
  else state.reserved.set(key, bytes);
  makeRoom(state);
}

/** Of the least recently used documents those go that are past their hard limit, or that only failed, long ago. */
export function dropExpired(state: CacheState): void {
  const now = state.options.now();
  let left = MAX_SWEPT;
  for (const [key, entry] of state.entries) {
    if (left === 0) return;
    left -= 1;
    const { copy, failure } = entry;
    const isNeeded =
      (copy !== undefined && now < copy.hardUntil) ||
      (failure !== undefined && isWithin(now, failure.at, failure.backOffMs + FAILURE_KEPT_MS)) ||
      runningFetch(state.options, entry) !== undefined;
    if (!isNeeded) dropEntry(state, key);
  }
}
