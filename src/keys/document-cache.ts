import { settledWithin } from '../time-limits.ts';
import {
  begin,
  type CacheOptions,
  type CacheState,
  type Entry,
  liveFetch,
  type Purpose,
  type Running,
  usable,
} from './document-fetch.ts';
import { type Answer, type Copy, type DocumentKind, type Wish, within } from './document.ts';
import { freeLeave, type Leave } from './fetch-budget.ts';

/**
 * Key documents by URL. One fetch in flight a URL, copies kept over failures until their hard limit, failures remembered
 * with back-off (verification.md §5.18, §5.19). URLs come from configuration and from the documents of
 * configured senders alone, so nothing that an unauthenticated caller sends makes an entry.
 */
export interface DocumentCache {
  /** How many fetches were begun: a copy of a higher order is of a fetch begun later than this call. */
  order(): number;
  /** What is held within its hard limit; nothing is fetched. */
  held<T>(kind: DocumentKind<T>, url: string): Copy<T> | undefined;
  isFresh(copy: Copy<unknown>): boolean;
  /** Gives up what is held of a document that nobody asks for any more. */
  forget(kind: Pick<DocumentKind<unknown>, 'name'>, url: string): void;
  /** Says that the copy held was used: near the end of its life a refresh begins, and nobody waits for it. */
  used<T>(kind: DocumentKind<T>, url: string, seller: string): void;
  /** A fresh copy; where that cannot be had in time, the one that is held. */
  current<T>(kind: DocumentKind<T>, url: string, leave: Leave): Promise<Answer<T>>;
  /** A copy that fulfils the wish, fetched again where the one held does not, at most once in the cooldown. */
  renewed<T>(kind: DocumentKind<T>, url: string, wish: Wish<T>, leave: Leave): Promise<Answer<T>>;
  /** Aborts what runs and begins nothing more; what is held still serves. */
  stop(): void;
}

/** A URL can move to another fetch while a caller waits, but not without end. */
const MAX_ROUNDS = 3;

export function createDocumentCache(options: CacheOptions): DocumentCache {
  const state: CacheState = { options, entries: new Map(), order: 0, stopped: false };
  return {
    order: () => state.order,
    held: (kind, url) => {
      const entry = touched(state, kind, url);
      return entry && usable(state, entry);
    },
    forget: (kind, url) => {
      dropEntry(state, kind, url);
    },
    isFresh: (copy) => isFresh(state, copy),
    used: (kind, url, seller) => {
      refreshEarly(state, kind, url, freeLeave(seller));
    },
    current: (kind, url, leave) => current(state, kind, url, leave),
    renewed: (kind, url, wish, leave) => renewed(state, kind, url, wish, leave),
    stop: () => {
      state.stopped = true;
      for (const entry of state.entries.values()) entry.running?.controller.abort(new Error('stopped'));
    },
  };
}

function isFresh(state: CacheState, copy: Copy<unknown>): boolean {
  return within(state.options.now(), copy.began, copy.freshUntil - copy.began);
}

/** Why no fetch may be begun now. */
function barred<T>(state: CacheState, entry: Entry<T>): string | undefined {
  if (state.stopped) return 'stopped';
  const { failure } = entry;
  if (failure === undefined || !within(state.options.now(), failure.at, failure.backOffMs)) return undefined;
  return `the last fetch failed (${failure.reason})`;
}

/** At most one refetch in the cooldown (verification.md §5.4); the first fetch of all is none. */
function cooling<T>(state: CacheState, entry: Entry<T>): string | undefined {
  const { now, limits } = state.options;
  if (usable(state, entry) === undefined || entry.refetched === undefined) return undefined;
  return within(now(), entry.refetched, limits.cooldownMs) ? 'fetched again lately, cooling down' : undefined;
}

interface Errand<T> {
  readonly state: CacheState;
  readonly kind: DocumentKind<T>;
  readonly url: string;
  readonly leave: Leave;
}

function beginUnless<T>(why: string | undefined, errand: Errand<T>, purpose: Purpose): Running<T> | string {
  const { state, kind, url, leave } = errand;
  if (why !== undefined) return why;
  if (!leave.mayFetch()) return 'left out: too many fetches for one delivery';
  return begin({ state, kind, url, entry: entryOf(state, kind, url), seller: leave.seller }, purpose);
}

/**
 * At 80 % of a copy's life, and only on its use: what nobody asks for is not fetched, and no timer has to be held. Where
 * fetches are not shared nothing shows that one is under way, so that the moment at which it began has to.
 */
function refreshEarly<T>(state: CacheState, kind: DocumentKind<T>, url: string, leave: Leave): void {
  const entry = entryOf(state, kind, url);
  const { now, deadlineMs } = state.options;
  const due = entry.copy?.refreshAt;
  if (due === undefined || now() < due || liveFetch(state.options, entry) !== undefined) return;
  if (entry.began !== undefined && within(now(), entry.began, deadlineMs)) return;
  beginUnless(barred(state, entry), { state, kind, url, leave }, 'refresh');
}

async function current<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  leave: Leave,
): Promise<Answer<T>> {
  const entry = entryOf(state, kind, url);
  const copy = usable(state, entry);
  if (copy !== undefined && isFresh(state, copy)) {
    refreshEarly(state, kind, url, leave);
    return { ok: true, copy };
  }
  const running =
    liveFetch(state.options, entry) ??
    beginUnless(barred(state, entry), { state, kind, url, leave }, 'refresh');
  if (typeof running === 'string') return copy ? { ok: true, copy } : { ok: false, reason: running };
  const patience = copy ? patienceFor(state, running) : state.options.deadlineMs;
  const answer = await waitFor(running, Math.min(patience, leave.waitMs()));
  if (answer.ok) return answer;
  const kept = usable(state, entry);
  return kept ? { ok: true, copy: kept } : answer;
}

async function renewed<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  wish: Wish<T>,
  leave: Leave,
): Promise<Answer<T>> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const entry = entryOf(state, kind, url);
    const copy = usable(state, entry);
    if (copy !== undefined && (wish.wanted(copy) || wish.decisive(copy))) return { ok: true, copy };
    const joined = liveFetch(state.options, entry);
    const cools = wish.evenIfCooling !== true;
    const why = barred(state, entry) ?? (cools ? cooling(state, entry) : undefined);
    const running = joined ?? beginUnless(why, { state, kind, url, leave }, 'renewal');
    if (typeof running === 'string') return { ok: false, reason: running };
    if (cools && joined === undefined && copy !== undefined) entry.refetched = running.began;
    const answer = await waitFor(running, Math.min(state.options.deadlineMs, leave.waitMs()));
    if (!answer.ok || wish.wanted(answer.copy)) return answer;
    if (wish.decisive(answer.copy)) {
      if (cools) entry.refetched = running.began;
      return answer;
    }
    // It was joined and began too early to be decisive: the cooldown says whether there may be another.
  }
  return { ok: false, reason: 'no fetch began after the delivery arrived' };
}

/** Counted from the fetch's begin: those who come late to a slow refresh do not wait as long again. */
function patienceFor(state: CacheState, running: Running<unknown>): number {
  const { now, limits } = state.options;
  return Math.max(0, limits.patienceMs - Math.max(0, now() - running.began));
}

/** Bounded by each waiter's own timer: where requests own their I/O, a fetch can die unseen. */
async function waitFor<T>(running: Running<T>, ms: number): Promise<Answer<T>> {
  return (await settledWithin(running.answer, ms)) ?? { ok: false, reason: 'no answer in time' };
}

type Named = Pick<DocumentKind<unknown>, 'name'>;

/** The kind is part of it. */
function keyOf({ name }: Named, url: string): string {
  return `${name} ${url}`;
}

/** The entry, if there is one; it is then the one asked for last. It holds what its kind's `parse` gave. */
function touched<T>({ entries }: CacheState, kind: DocumentKind<T>, url: string): Entry<T> | undefined {
  const key = keyOf(kind, url);
  const entry = entries.get(key);
  if (entry === undefined) return undefined;
  entries.delete(key);
  entries.set(key, entry);
  return entry as Entry<T>;
}

/** The same, made where there is none. */
function entryOf<T>(state: CacheState, kind: DocumentKind<T>, url: string): Entry<T> {
  const known = touched(state, kind, url);
  if (known !== undefined) return known;
  const { entries, options } = state;
  if (entries.size >= options.limits.maxDocuments) dropOldest(state);
  const entry: Entry<T> = {
    copy: undefined,
    failure: undefined,
    refetched: undefined,
    began: undefined,
    running: undefined,
  };
  entries.set(keyOf(kind, url), entry);
  return entry;
}

function dropOldest({ entries, options }: CacheState): void {
  for (const [key, entry] of entries) {
    // Were it forgotten, its URL could have two fetches in flight.
    if (liveFetch(options, entry) !== undefined) continue;
    entries.delete(key);
    return;
  }
}

function dropEntry({ entries }: CacheState, kind: Named, url: string): void {
  entries.delete(keyOf(kind, url));
}
