// Bounds the memory of the document cache: estimates, reservations, and dropping what was used least recently
// (verification.md §5.18).
// Called by `document-cache.ts` alone.

import { type CacheState, type Entry, isWithin, runningFetch } from './document.ts';

/** Memory of a parsed document per byte of its text, measured for the worst kind. */
const HEAP_PER_BYTE = 6;

/**
 * Documents examined for each new one, least recently used first: so many may come and go without a full
 * scan.
 */
const MAX_SWEPT = 32;

/** Time for which a failure is remembered after its back-off, so that its alarm can count. Ms. */
const FAILURE_KEPT_MS = 10 * 60_000;

/** Removes a document. */
export function dropEntry(state: CacheState, key: string): void {
  state.heldBytes -= state.entries.get(key)?.heldBytes ?? 0;
  state.entries.delete(key);
}

/** Notes the size of a copy that was just kept, and drops the least recently used ones above the bound. */
export function noteSize(state: CacheState, key: string, entry: Entry<unknown>, bytes: number): void {
  // An entry that was dropped during its fetch is held only by those that wait for it, so it is not counted.
  if (state.entries.get(key) !== entry) return;
  const held = bytes * HEAP_PER_BYTE;
  state.heldBytes += held - entry.heldBytes;
  entry.heldBytes = held;
  makeRoom(state, entry);
}

/** Drops the least recently used documents above the bound, which is at least half of the owner's limit. */
function makeRoom(state: CacheState, keeping?: Entry<unknown>): void {
  const { maxBytes = Number.POSITIVE_INFINITY } = state.options.limits;
  const room = Math.max(maxBytes - state.reservedBytes, maxBytes / 2);
  for (const [oldest, other] of state.entries) {
    if (state.heldBytes <= room) return;
    if (other !== keeping && runningFetch(state.options, other) === undefined) dropEntry(state, oldest);
  }
}

/**
 * Counts memory that a document needs beside the cache and that cannot be dropped. @param bytes 0 releases
 * it.
 */
export function reserve(state: CacheState, key: string, bytes: number): void {
  state.reservedBytes += bytes - (state.reserved.get(key) ?? 0);
  if (bytes === 0) state.reserved.delete(key);
  else state.reserved.set(key, bytes);
  makeRoom(state);
}

/**
 * Drops old documents among the least recently used: those past their hard limit, and those that only failed,
 * long ago.
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
