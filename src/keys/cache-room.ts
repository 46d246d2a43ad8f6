// Bounds the memory of the document cache: estimates sizes, reserves memory, and drops the least recently used
// documents (verification.md §5.18).
// Called by `document-cache.ts` alone.

import { type CacheState, type Entry, isWithin, runningFetch } from './document.ts';

/** The memory of a parsed document in bytes per byte of its text, measured for the most expensive document kind. */
const HEAP_PER_BYTE = 6;

/**
 * The number of old documents that are examined for each new one, least recently used first. This drops expired
 * documents without a scan of the whole cache.
 */
const MAX_SWEPT = 32;

/**
 * The time in ms for which a failure is remembered after its back-off, so that an alarm can count repeated failures.
 */
const FAILURE_KEPT_MS = 10 * 60_000;

export function dropEntry(state: CacheState, key: string): void {
  state.heldBytes -= state.entries.get(key)?.heldBytes ?? 0;
  state.entries.delete(key);
}

/**
 * Records the size of a copy that was just stored. If the cache is then too large, drops the least recently used
 * copies.
 */
export function noteSize(state: CacheState, key: string, entry: Entry<unknown>, bytes: number): void {
  // The entry was dropped from the cache during its fetch. Only the callers that wait for the fetch get the copy, so
  // its size does not count.
  if (state.entries.get(key) !== entry) return;
  const held = bytes * HEAP_PER_BYTE;
  state.heldBytes += held - entry.heldBytes;
  entry.heldBytes = held;
  makeRoom(state, entry);
}

/**
 * Drops the least recently used documents until the others fit into the limit `maxBytes` minus reserved memory. At
 * least half of `maxBytes` stays for documents.
 * @param keeping an entry that is not dropped.
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
 * Reserves memory that a document needs in addition to its cached copy and that must not be dropped, e.g. for merged
 * revocation lists.
 * @param bytes 0 releases the reservation.
 */
export function reserve(state: CacheState, key: string, bytes: number): void {
  state.reservedBytes += bytes - (state.reserved.get(key) ?? 0);
  if (bytes === 0) state.reserved.delete(key);
  else state.reserved.set(key, bytes);
  makeRoom(state);
}

/**
 * Examines some of the least recently used documents, and drops those past their hard limit. An entry without a copy
 * is dropped when its last failure need not be remembered any longer.
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
