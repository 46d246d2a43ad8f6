// The cache of key documents: decides when a document is fetched, and how long a copy is used (verification.md
// §5.4, §5.15 to §5.19).
// Called by `sender-keys.ts`, `publisher-pins.ts` and `revocation.ts`; `document.ts` runs a single fetch.

import { dropEntry, dropExpired, noteSize, reserve } from './cache-room.ts';
import { settledWithin } from '../shared/time-limits.ts';
import {
  begin,
  type CacheOptions,
  type CacheState,
  type Copy,
  type CopyResult,
  type DocumentKind,
  type Entry,
  failureOf,
  type FetchRequest,
  type Freshness,
  isWithin,
  keyOf,
  type Purpose,
  type Running,
  runningFetch,
  STOPPED,
  usableCopy,
} from './document.ts';
import { type FetchBudget, unlimitedBudget } from './safe-fetch.ts';

/**
 * Caches key documents by URL. Each URL has at most one fetch in flight, on runtimes where requests can share one. If
 * a fetch fails, the old copy is used until its hard limit, and the next fetch waits for a back-off (verification.md
 * §5.18, §5.19). URLs come only from configuration and from documents of configured senders, so an unauthenticated
 * caller cannot create an entry.
 */
export interface DocumentCache {
  /** The number of cached documents, and their estimated size in bytes. */
  held(): { readonly documents: number; readonly bytes: number };
  /** Returns the number of fetches begun so far. The fetch of a copy with a higher number began after this call. */
  fetchCount(): number;
  /** Returns the cached copy if it is within its hard limit; otherwise undefined. Fetches nothing. */
  cached<T>(kind: DocumentKind<T>, url: string): Copy<T> | undefined;
  isFresh(copy: Copy<unknown>): boolean;
  /**
   * Returns the second URL of a document if the first one lately answered 404 and need not be requested again yet.
   * Otherwise undefined.
   */
  elsewhere<T>(kind: DocumentKind<T>, url: string): Promise<Elsewhere>;
  /** Drops the cached copy of a document that no sender needs any more. */
  forget(kind: Pick<DocumentKind<unknown>, 'name'>, url: string): void;
  /**
   * Reserves memory that a document needs in addition to its copy and that is never dropped. The reservation
   * reduces the memory left for documents; 0 releases it.
   */
  reserve(kind: Pick<DocumentKind<unknown>, 'name'>, url: string, bytes: number): void;
  /**
   * Notes that the cached copy was used. If the copy is near the end of its lifetime, starts a refresh in the
   * background.
   */
  noteUse<T>(kind: DocumentKind<T>, url: string, seller: string): void;
  /** Returns a fresh copy. If none can be fetched in time, returns the cached one. */
  current<T>(kind: DocumentKind<T>, url: string, budget: FetchBudget): Promise<CopyResult<T>>;
  /**
   * Returns a copy that satisfies `freshness`. If the cached copy does not, fetches the document again, at most once
   * per cooldown.
   */
  renewed<T>(
    kind: DocumentKind<T>,
    url: string,
    freshness: Freshness<T>,
    budget: FetchBudget,
  ): Promise<CopyResult<T>>;
  /** Aborts running fetches and starts no more; cached copies can still be used. */
  stop(): void;
  /** Allows fetches again after `stop`. */
  resume(): void;
}

type Elsewhere = Extract<CopyResult<unknown>, { ok: false }>['elsewhere'] | undefined;

/**
 * The maximum number of fetches for which one call of `renewed` waits. A fetch that another caller started may have
 * begun too early. Then the call waits for a further fetch.
 */
const MAX_ROUNDS = 3;

export function createDocumentCache(options: CacheOptions): DocumentCache {
  const state: CacheState = {
    options,
    entries: new Map(),
    fetchCount: 0,
    heldBytes: 0,
    reserved: new Map(),
    reservedBytes: 0,
    noteSize: (key, entry, bytes) => noteSize(state, key, entry, bytes),
    stopped: false,
  };
  return {
    held: () => ({ documents: state.entries.size, bytes: state.heldBytes + state.reservedBytes }),
    fetchCount: () => state.fetchCount,
    cached: (kind, url) => {
      const entry = findEntry(state, kind, url);
      return entry && usableCopy(state, entry);
    },
    forget: (kind, url) => {
      dropEntry(state, keyOf(kind, url));
    },
    reserve: (kind, url, bytes) => reserve(state, keyOf(kind, url), bytes),
    isFresh: (copy) => isFresh(state, copy),
    elsewhere: async (kind, url) => {
      const entry = findEntry(state, kind, url);
      if (entry?.failure === undefined) return undefined;
      const request = { state, kind, url, entry };
      const reason = blockedReason(request);
      return reason === undefined ? undefined : (await failureOf(request, reason)).elsewhere;
    },
    noteUse: (kind, url, seller) => {
      refreshEarly(requestFor(state, kind, url, unlimitedBudget(seller)));
    },
    current: (kind, url, budget) => current(requestFor(state, kind, url, budget)),
    renewed: (kind, url, freshness, budget) => renewed(state, kind, url, freshness, budget),
    stop: () => {
      state.stopped = true;
      for (const entry of state.entries.values()) entry.running?.controller.abort(STOPPED);
    },
    resume: () => {
      state.stopped = false;
    },
  };
}

function isFresh(state: CacheState, copy: Copy<unknown>): boolean {
  return isWithin(state.options.now(), copy.fetchedAt, copy.freshUntil - copy.fetchedAt);
}

/** Returns the reason why no fetch may start now; undefined if a fetch may start. */
function blockedReason({ state, entry }: Pick<FetchRequest<unknown>, 'state' | 'entry'>): string | undefined {
  if (state.stopped) return 'stopped';
  const { failure } = entry;
  const isBackingOff = failure !== undefined && isWithin(state.options.now(), failure.at, failure.backOffMs);
  return isBackingOff ? `the last fetch failed (${failure.reason})` : undefined;
}

/**
 * Returns the reason why the cooldown forbids another fetch, or undefined. After a refetch, none is allowed for
 * `cooldownMs` (verification.md §5.4). The first fetch of a URL starts none, unless its copy lacked the wanted value.
 */
function cooldownReason({ state, entry }: FetchRequest<unknown>): string | undefined {
  const { now, limits } = state.options;
  if (usableCopy(state, entry) === undefined || entry.refetched === undefined) return undefined;
  return isWithin(now(), entry.refetched, limits.cooldownMs)
    ? 'fetched again lately, cooling down'
    : undefined;
}

function beginUnless<T>(
  reason: string | undefined,
  request: FetchRequest<T>,
  purpose: Purpose,
): Running<T> | string {
  if (reason !== undefined) return reason;
  if (!request.budget.mayFetch()) return 'left out: too many fetches for one delivery';
  return begin(request, purpose);
}

/**
 * Starts a refresh after 72 to 80 % of the copy's lifetime. Called when a copy is used, so no timer is needed
 * and unused documents are not fetched.
 * On runtimes where requests cannot share a fetch, `lastBegan` is the only sign of a running fetch.
 */
function refreshEarly<T>(request: FetchRequest<T>): void {
  const { state, entry } = request;
  const { now, deadlineMs } = state.options;
  const due = entry.copy?.refreshAt;
  if (due === undefined || now() < due || runningFetch(state.options, entry) !== undefined) return;
  if (entry.lastBegan !== undefined && isWithin(now(), entry.lastBegan, deadlineMs)) return;
  beginUnless(blockedReason(request), request, 'refresh');
}

async function current<T>(request: FetchRequest<T>): Promise<CopyResult<T>> {
  const { state, entry, budget } = request;
  const { options } = state;
  const copy = usableCopy(state, entry);
  if (copy !== undefined && isFresh(state, copy)) {
    refreshEarly(request);
    return { ok: true, copy };
  }
  const running = runningFetch(options, entry) ?? beginUnless(blockedReason(request), request, 'refresh');
  if (typeof running === 'string') return copy ? { ok: true, copy } : await failureOf(request, running);
  const patienceMs = copy ? patienceFor(state, running) : options.deadlineMs;
  const result = await waitFor(running, Math.min(patienceMs, budget.waitMs()));
  if (result.ok) return result;
  const kept = usableCopy(state, entry);
  // The fetch may have been started for another sender, whose document kind has no second URL. Therefore `failureOf`
  // adds this sender's second URL.
  return kept ? { ok: true, copy: kept } : await failureOf(request, result.reason);
}

async function renewed<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  freshness: Freshness<T>,
  budget: FetchBudget,
): Promise<CopyResult<T>> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const request = requestFor(state, kind, url, budget);
    const copy = usableCopy(state, request.entry);
    if (copy !== undefined && (freshness.hasWanted(copy) || freshness.isFreshEnough(copy))) {
      return { ok: true, copy };
    }
    const result = await refetch(request, copy, freshness);
    if (!result.ok || freshness.hasWanted(result.copy) || freshness.isFreshEnough(result.copy)) return result;
    // The fetch that was waited for began too early for this caller. The next round starts another one if the cooldown
    // allows it.
  }
  return { ok: false, reason: 'no fetch began after the delivery arrived' };
}

/** Waits for the running fetch of the document, or starts one. Notes its start, from which the cooldown counts. */
async function refetch<T>(
  request: FetchRequest<T>,
  copy: Copy<T> | undefined,
  { hasWanted, isFreshEnough, ignoresCooldown = false }: Freshness<T>,
): Promise<CopyResult<T>> {
  const { state, entry, budget } = request;
  const joined = runningFetch(state.options, entry);
  const blocked = blockedReason(request) ?? (ignoresCooldown ? undefined : cooldownReason(request));
  const running = joined ?? beginUnless(blocked, request, 'renewal');
  if (typeof running === 'string') return { ok: false, reason: running };
  const noteRefetch = (): void => {
    if (!ignoresCooldown) entry.refetched = running.began;
  };
  if (joined === undefined && copy !== undefined) noteRefetch();
  const result = await waitFor(running, Math.min(state.options.deadlineMs, budget.waitMs()));
  if (result.ok && !hasWanted(result.copy) && isFreshEnough(result.copy)) noteRefetch();
  return result;
}

/**
 * Returns the time in ms for which a caller waits for a running fetch. The time counts from the start of the fetch, so
 * a caller that joins late waits less.
 */
function patienceFor(state: CacheState, running: Running<unknown>): number {
  const { now, limits } = state.options;
  return Math.max(0, limits.patienceMs - Math.max(0, now() - running.began));
}

/**
 * Waits for a fetch, at most `ms`. Each caller has a timer of its own, because a fetch that another request started
 * may never settle.
 */
async function waitFor<T>({ result }: Running<T>, ms: number): Promise<CopyResult<T>> {
  return (await settledWithin(result, ms)) ?? { ok: false, reason: 'no answer in time' };
}

/**
 * Returns the cache entry of a document, if there is one, and makes it the most recently used. The cast is safe,
 * because each entry contains only results of `parse` of its own kind.
 */
function findEntry<T>({ entries }: CacheState, kind: DocumentKind<T>, url: string): Entry<T> | undefined {
  const key = keyOf(kind, url);
  const entry = entries.get(key);
  if (entry === undefined) return undefined;
  entries.delete(key);
  entries.set(key, entry);
  return entry as Entry<T>;
}

function requestFor<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  budget: FetchBudget,
): FetchRequest<T> {
  const { entries, options } = state;
  let entry = findEntry(state, kind, url);
  if (entry === undefined) {
    dropExpired(state);
    if (entries.size >= options.limits.maxDocuments) dropOldest(state);
    entry = {
      copy: undefined,
      failure: undefined,
      refetched: undefined,
      lastBegan: undefined,
      heldBytes: 0,
      running: undefined,
    };
    entries.set(keyOf(kind, url), entry);
  }
  return { state, kind, url, entry, budget };
}

function dropOldest(state: CacheState): void {
  const { entries, options } = state;
  for (const [key, entry] of entries) {
    // An entry with a running fetch is not dropped; otherwise a second fetch of its URL could start.
    if (runningFetch(options, entry) !== undefined) continue;
    dropEntry(state, key);
    return;
  }
}
