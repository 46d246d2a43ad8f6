// Bounds the memory of the document cache: estimates sizes, reserves memory, and drops the least recently used
// documents (verification.md §5.18).
// Called by `document-cache.ts` alone.

import { type CacheState, type Entry, isWithin, runningFetch } from './document.ts';

/** Memory of a parsed document per byte of its text, measured for the worst kind. */
const HEAP_PER_BYTE = 6;

/**
 * For each new document, this many old ones are examined, least recently used first. So expired ones are dropped
 * without a scan of the whole cache.
 */
const MAX_SWEPT = 32;

/**
 * A failure is remembered for this long after its back-off ends, so that its alarm can count repeated failures. Ms.
 */
const FAILURE_KEPT_MS = 10 * 60_000;

/** Removes a document. */
export function dropEntry(state: CacheState, key: string): void {
  state.heldBytes -= state.entries.get(key)?.heldBytes ?? 0;
  state.entries.delete(key);
}

/**
 * Records the size of a copy that was just stored. If the cache is then too large, drops the least recently used
 * copies.
 */
export function noteSize(state: CacheState, key: string, entry: Entry<unknown>, bytes: number): void {
  // If the entry was dropped during its fetch, only callers that wait for the fetch hold it, so its size is not
  // added.
  if (state.entries.get(key) !== entry) return;
  const held = bytes * HEAP_PER_BYTE;
  state.heldBytes += held - entry.heldBytes;
  entry.heldBytes = held;
  makeRoom(state, entry);
}

/**
 * Drops the least recently used documents until the rest fits. The bound is the owner's limit minus reservations,
 * but at least half of that limit.
 */
function makeRoom(state: CacheState, keeping?: Entry<unknown>): void {
  const { maxBytes = Number.POSITIVE_INFINITY } = state.options.limits;
  const room = Math.max(maxBytes - state.reservedBytes, maxBytes / 2);
  for (const [oldest, other] of state.entries) {
    if (state.heldBytes <= room) return;
    if (other !== keeping && runningFetch(state.options, other) === undefined) dropEntry(state, oldest);
  }
}

/**
 * Reserves memory that a document needs in addition to its cached copy and that cannot be dropped.
 * @param bytes 0 releases the reservation.
 */
export function reserve(state: CacheState, key: string, bytes: number): void {
  state.reservedBytes += bytes - (state.reserved.get(key) ?? 0);
  if (bytes === 0) state.reserved.delete(key);
  else state.reserved.set(key, bytes);
  makeRoom(state);
}

/**
 * Examines some of the least recently used documents, and drops those past their hard limit. An entry that has had
 * only failures is dropped once the last is long ago.
 */
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
