import type { Logger, RaiseAlarm } from '../alarms.ts';
import { MAX_URL_BYTES, printableName, printableText } from '../codec/printable.ts';
import {
  ageOf,
  type Answer,
  backOffMs,
  type Copy,
  type DocumentKind,
  KEY_DOCUMENT_LIFE,
  lifeOf,
  refreshAfter,
  type Validators,
  within,
} from './document.ts';
import { fetchDocument, type Fetched, type FetchRules } from './safe-fetch.ts';

export interface CacheLimits {
  /** Ms a copy may serve after its fetch began while refreshes fail. */
  readonly hardLimitMs: number;
  /** Ms between two refetches of one URL beyond its copies' own life. */
  readonly cooldownMs: number;
  /** Ms that a delivery waits for the refresh of a copy that may still serve. */
  readonly patienceMs: number;
  readonly maxDocuments: number;
}

export interface CacheOptions extends FetchRules {
  /** Unix ms. */
  readonly now: () => number;
  readonly limits: CacheLimits;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: Logger;
  /** In [0, 1): spreads background refreshes. `Math.random` where absent. */
  readonly random?: () => number;
  /**
   * Whether callers may wait for a fetch that another caller began. False where a request owns its I/O (workerd): a
   * promise dies with the request that made it, so each fetches for itself and only results are kept. True where absent.
   */
  readonly sharedFetches?: boolean;
}

/** What the cache knows of one URL. */
export interface Entry<T> {
  copy: Copy<T> | undefined;
  failure: Failure | undefined;
  /**
   * When the last refetch began that somebody asked for beyond the copy's own life, whatever became of it, or the fetch
   * of a first copy that lacked what was wanted; Unix ms.
   */
  refetched: number | undefined;
  /** When the last fetch began, whatever it was for; Unix ms. */
  began: number | undefined;
  /** The fetch that others may wait for. */
  running: Running<T> | undefined;
}

interface Failure {
  readonly reason: string;
  /** Unix ms. */
  readonly at: number;
  readonly backOffMs: number;
  /** In a row. */
  readonly count: number;
  /** The first of them, Unix ms. */
  readonly since: number;
}

export interface Running<T> {
  readonly began: number;
  readonly order: number;
  readonly controller: AbortController;
  /** Never rejects. */
  readonly answer: Promise<Answer<T>>;
}

export interface CacheState {
  readonly options: CacheOptions;
  /** Least recently used first. */
  readonly entries: Map<string, Entry<unknown>>;
  order: number;
  stopped: boolean;
}

/**
 * A fetch that outlived three deadlines is gone: its request's runtime ended it without a word. Were it still counted
 * as in flight, its URL would never be fetched again.
 */
const GONE_AFTER_DEADLINES = 3;

/** No honest validator is longer, and it is sent back with every refresh. */
const MAX_VALIDATOR = 1000;

/** Asks caches on the way to ask the server itself (RFC 9111 §5.2.1.4). */
const END_TO_END: Readonly<Record<string, string>> = { 'cache-control': 'no-cache' };

/**
 * Why a fetch is made. `refresh`: the copy's life says so, and "not changed" is an answer. `renewal`: somebody needs
 * more than the copy says, so the whole document is asked for, from its origin.
 */
export type Purpose = 'refresh' | 'renewal';

/** What a fetch is about: one kind of document at one URL, and what the cache knows of it. */
interface Place<T> {
  readonly state: CacheState;
  readonly kind: DocumentKind<T>;
  readonly url: string;
  readonly entry: Entry<T>;
  /** Agent URL of the seller for whom it is fetched. */
  readonly seller: string;
}

interface Flaw {
  readonly code: 'key_fetch_failing' | 'key_document_invalid';
  readonly reason: string;
}

/** The fetch of this URL that is in flight and can be waited for, if one is. */
export function liveFetch<T>(options: CacheOptions, entry: Entry<T>): Running<T> | undefined {
  const { running } = entry;
  if (running === undefined) return undefined;
  return within(options.now(), running.began, options.deadlineMs * GONE_AFTER_DEADLINES)
    ? running
    : undefined;
}

/** The copy within its hard limit. */
export function usable<T>(state: CacheState, entry: Entry<T>): Copy<T> | undefined {
  return entry.copy !== undefined && state.options.now() < entry.copy.hardUntil ? entry.copy : undefined;
}

/** Begins a fetch; the caller has seen that none can be joined and that one is due. */
export function begin<T>(place: Place<T>, purpose: Purpose): Running<T> {
  const { state, entry } = place;
  state.order += 1;
  const began = state.options.now();
  const { order } = state;
  const controller = new AbortController();
  const answer = run(place, { began, order, controller }, purpose);
  const running: Running<T> = { began, order, controller, answer };
  entry.began = began;
  if (state.options.sharedFetches !== false) entry.running = running;
  return running;
}

async function run<T>(
  place: Place<T>,
  started: Omit<Running<T>, 'answer'>,
  purpose: Purpose,
): Promise<Answer<T>> {
  const { state, kind, url, entry, seller } = place;
  const { options } = state;
  const asked = purpose === 'refresh' ? entry.copy : undefined;
  const headers = purpose === 'refresh' ? conditions(asked?.validators) : END_TO_END;
  const wanted = { url, maxBytes: kind.maxBytes, seller };
  const fetched = await fetchDocument(options, wanted, started.controller, headers);
  if (entry.running?.order === started.order) entry.running = undefined;
  if (!fetched.ok) return failed(place, { code: 'key_fetch_failing', reason: fetched.reason });
  const unchanged = fetched.notModified === true ? asked : undefined;
  const parsed = unchanged ? { ok: true as const, value: unchanged.value } : kind.parse(fetched.bytes, url);
  if (!parsed.ok) return failed(place, { code: 'key_document_invalid', reason: parsed.reason });
  const inForce = unchanged ? undefined : usable(state, entry);
  const spoilt = inForce && kind.spoils?.(parsed.value, inForce.value);
  if (spoilt !== undefined) return failed(place, { code: 'key_document_invalid', reason: spoilt });
  const cached = purpose === 'refresh' && ageOf(fetched.headers) > 0;
  const copy = copyOf(place, started, { value: parsed.value, headers: fetched.headers, unchanged, cached });
  if (entry.copy === undefined || entry.copy.order < started.order) {
    kind.landed?.(copy, entry.copy);
    entry.copy = copy;
  }
  entry.failure = undefined;
  const fields = { url, document: kind.name };
  const warning = 'warning' in parsed ? parsed.warning : undefined;
  if (warning === undefined) options.logger.debug(fields, 'key document fetched');
  else options.logger.warn(fields, warning);
  return { ok: true, copy };
}

/** RFC 9110 §13.1: both, for servers that know only one; the tag decides where it is understood. */
function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

interface Got<T> {
  readonly value: T;
  readonly headers: Extract<Fetched, { ok: true }>['headers'];
  /** The copy that the server said was still the document. */
  readonly unchanged: Copy<T> | undefined;
  /** A cache on the way had held the answer, and was not told to ask the server itself. */
  readonly cached: boolean;
}

function copyOf<T>(
  { state, kind }: Place<T>,
  { began, order }: Omit<Running<T>, 'answer'>,
  { value, headers, unchanged, cached }: Got<T>,
): Copy<T> {
  const { limits, random = Math.random } = state.options;
  const due = kind.dueAt?.(value, began);
  const rules = kind.life ?? KEY_DOCUMENT_LIFE;
  // A 304 that says nothing of the life leaves it as it was (RFC 9111 §4.3.4).
  const silentMs = unchanged ? unchanged.freshUntil - unchanged.began : rules.silentMs;
  const freshUntil = due ?? began + lifeOf(headers, { ...rules, silentMs });
  const validators = { ...unchanged?.validators, ...validatorsOf(headers) };
  return {
    value,
    began,
    order,
    freshUntil,
    hardUntil: began + (kind.hardLimitMs ?? limits.hardLimitMs),
    // A document that names the moment of its next issue has nothing new before it.
    ...(due === undefined && { refreshAt: began + refreshAfter(freshUntil - began, random) }),
    ...(Object.keys(validators).length > 0 && { validators }),
    ...((unchanged !== undefined || cached) && { indirect: true }),
  };
}

function validatorsOf(headers: Headers): Validators {
  const etag = headers.get('etag');
  const lastModified = headers.get('last-modified');
  return {
    ...(etag !== null && etag.length <= MAX_VALIDATOR && { etag }),
    ...(lastModified !== null && lastModified.length <= MAX_VALIDATOR && { lastModified }),
  };
}

/** Code points of a reason, which may have a counterparty's words in it. */
const MAX_REASON = 300;

function failed<T>({ state, kind, url, entry }: Place<T>, { code, reason: why }: Flaw): Answer<T> {
  const { now, raiseAlarm } = state.options;
  const reason = printableText(why, MAX_REASON);
  // Our own stop ended it: no fault of the server's.
  if (state.stopped) return { ok: false, reason: 'stopped' };
  const count = (entry.failure?.count ?? 0) + 1;
  const at = now();
  const since = entry.failure?.since ?? at;
  entry.failure = { reason, at, backOffMs: backOffMs(count), count, since };
  raiseAlarm({
    code,
    message: `${kind.name} at ${printableName(url, MAX_URL_BYTES)}: ${reason}. ${
      usable(state, entry) === undefined
        ? 'There is no earlier copy'
        : 'The earlier copy serves until its hard limit'
    }.`,
    url,
    document: kind.name,
    failures: count,
    failingSince: since,
  });
  return { ok: false, reason };
}
