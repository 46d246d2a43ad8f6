// The cache of key documents: when a document is fetched, and how long a copy serves (verification.md §5.4,
// §5.15 to §5.19).
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
 * Key documents by URL. Each URL has one fetch in flight. Copies are kept over failures until their hard
 * limit, and failures are remembered with back-off (verification.md §5.18, §5.19). URLs come only from
 * configuration and from the documents of configured senders, so no unauthenticated caller can create an
 * entry.
 */
export interface DocumentCache {
  /** Number of documents, and their estimated bytes. */
  held(): { readonly documents: number; readonly bytes: number };
  /** Number of fetches begun so far: a copy with a higher number is of a later fetch. */
  fetchCount(): number;
  /** The copy within its hard limit; nothing is fetched. */
  cached<T>(kind: DocumentKind<T>, url: string): Copy<T> | undefined;
  isFresh(copy: Copy<unknown>): boolean;
  /** Returns the second place of a document, if its server answered 404 lately and is not asked again yet. */
  elsewhere<T>(kind: DocumentKind<T>, url: string): Promise<Elsewhere>;
  /** Drops a document that no sender needs any more. */
  forget(kind: Pick<DocumentKind<unknown>, 'name'>, url: string): void;
  /**
   * Counts memory that a document needs beside its copy, and that is never dropped, towards the bound of
   * bytes; 0 releases it.
   */
  reserve(kind: Pick<DocumentKind<unknown>, 'name'>, url: string, bytes: number): void;
  /** Notes a use of the cached copy: near the end of its lifetime a refresh starts in the background. */
  noteUse<T>(kind: DocumentKind<T>, url: string, seller: string): void;
  /** A fresh copy, or the cached one if no fresh one comes in time. */
  current<T>(kind: DocumentKind<T>, url: string, budget: FetchBudget): Promise<CopyResult<T>>;
  /**
   * A copy as fresh as required. If the cached one is not, it is fetched again, at most once per cooldown.
   */
  renewed<T>(
    kind: DocumentKind<T>,
    url: string,
    freshness: Freshness<T>,
    budget: FetchBudget,
  ): Promise<CopyResult<T>>;
  /** Aborts running fetches and starts no more; cached copies still serve. */
  stop(): void;
  /** Allows fetches again after `stop`. */
  resume(): void;
}

type Elsewhere = Extract<CopyResult<unknown>, { ok: false }>['elsewhere'] | undefined;

/**
 * Most rounds of one `renewed`: while it waits, the fetch of its URL may be replaced by another, but not
 * without end.
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

/** The reason why no fetch may start now. */
function blockedReason({ state, entry }: Pick<FetchRequest<unknown>, 'state' | 'entry'>): string | undefined {
  if (state.stopped) return 'stopped';
  const { failure } = entry;
  const isBackingOff = failure !== undefined && isWithin(state.options.now(), failure.at, failure.backOffMs);
  return isBackingOff ? `the last fetch failed (${failure.reason})` : undefined;
}

/** Allows one refetch per cooldown (verification.md §5.4); the first fetch of a URL does not count. */
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
 * Starts a refresh when its moment near 80 % of a copy's lifetime has come, and only on use. Unused documents
 * are not fetched, and no timer is needed. If requests may not share, only the start of the last fetch shows
 * that one is running.
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
  // The fetch may have been started for a sender that looks nowhere else, so `failureOf` names the other
  // place.
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
    // The joined fetch started too early: the cooldown decides if there may be another.
  }
  return { ok: false, reason: 'no fetch began after the delivery arrived' };
}

/** Joins the running fetch or starts one; notes the time for the cooldown. */
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
 * Counted from the start of the fetch: a caller that joins a slow refresh late does not wait the whole time
 * again.
 */
function patienceFor(state: CacheState, running: Running<unknown>): number {
  const { now, limits } = state.options;
  return Math.max(0, limits.patienceMs - Math.max(0, now() - running.began));
}

/** Gives each caller its own timer: if requests own their I/O, a fetch can end without settling. */
async function waitFor<T>({ result }: Running<T>, ms: number): Promise<CopyResult<T>> {
  return (await settledWithin(result, ms)) ?? { ok: false, reason: 'no answer in time' };
}

/**
 * The entry, if there is one, which becomes the most recently used. It contains what its kind's `parse`
 * returned.
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
    // Without its entry, its URL could have two fetches in flight.
    if (runningFetch(options, entry) !== undefined) continue;
    dropEntry(state, key);
    return;
  }
}
