import type { Instruments } from '../instruments.ts';
import type { Logger, RaiseAlarm } from '../alarms.ts';
import { requestsMayShare } from '../single-flight.ts';
import type { FetchBudget } from './fetch-budget.ts';
import { MAX_URL_BYTES, printableName, printableText } from '../codec/printable.ts';
import {
  ageSeconds,
  type CopyResult,
  backOffMs,
  type Copy,
  type DocumentKind,
  type Parsed,
  KEY_DOCUMENT_LIFE,
  lifetimeMs,
  refreshAfterMs,
  type Validators,
  isWithin,
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
  readonly instruments?: Pick<Instruments, 'fetched'>;
  /** In [0, 1): spreads background refreshes. `Math.random` where absent. */
  readonly random?: () => number;
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
  lastBegan: number | undefined;
  /** The fetch that others may wait for; none where requests may not share (`requestsMayShare`). */
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

interface Started {
  /** Unix ms. */
  readonly began: number;
  readonly fetchNumber: number;
  readonly controller: AbortController;
}

/** A fetch that is under way. */
export interface Running<T> extends Started {
  /** Never rejects. */
  readonly result: Promise<CopyResult<T>>;
}

export interface CacheState {
  readonly options: CacheOptions;
  /** Least recently used first. */
  readonly entries: Map<string, Entry<unknown>>;
  fetchCount: number;
  stopped: boolean;
}

/**
 * A fetch that outlived three deadlines is lost: its request's runtime ended it without settling it. If it still counted
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

/** One kind of document at one URL, what the cache knows of it, and what its caller may spend. */
export interface FetchRequest<T> {
  readonly state: CacheState;
  readonly kind: DocumentKind<T>;
  readonly url: string;
  readonly entry: Entry<T>;
  readonly budget: FetchBudget;
}

/** The fetch of this URL that is in flight and can be waited for, if one is. */
export function runningFetch<T>(
  { now, deadlineMs }: CacheOptions,
  { running }: Entry<T>,
): Running<T> | undefined {
  const isAlive = running !== undefined && isWithin(now(), running.began, deadlineMs * GONE_AFTER_DEADLINES);
  return isAlive ? running : undefined;
}

/** The copy within its hard limit. */
export function usableCopy<T>(state: CacheState, { copy }: Entry<T>): Copy<T> | undefined {
  return copy !== undefined && state.options.now() < copy.hardUntil ? copy : undefined;
}

/** Begins a fetch; the caller has seen that none can be joined and that one is due. */
export function begin<T>(request: FetchRequest<T>, purpose: Purpose): Running<T> {
  const { state, entry } = request;
  state.fetchCount += 1;
  const started = {
    began: state.options.now(),
    fetchNumber: state.fetchCount,
    controller: new AbortController(),
  };
  const running: Running<T> = { ...started, result: run(request, started, purpose) };
  entry.lastBegan = running.began;
  if (requestsMayShare()) entry.running = running;
  return running;
}

async function run<T>(request: FetchRequest<T>, started: Started, purpose: Purpose): Promise<CopyResult<T>> {
  const { state, kind, url, entry, budget } = request;
  const isRefresh = purpose === 'refresh';
  const known = isRefresh ? entry.copy : undefined;
  const headers = isRefresh ? conditions(known?.validators) : END_TO_END;
  const target = { url, maxBytes: kind.maxBytes, seller: budget.seller };
  const fetched = await fetchDocument(state.options, target, started.controller, headers);
  if (entry.running?.fetchNumber === started.fetchNumber) entry.running = undefined;
  if (!fetched.ok) return recordFailure(request, 'key_fetch_failing', fetched.reason);
  const unchanged = fetched.notModified === true ? known : undefined;
  const parsed = unchanged ? { ok: true as const, value: unchanged.value } : parse(request, fetched.bytes);
  if (!parsed.ok) return recordFailure(request, 'key_document_invalid', parsed.reason);
  const fromCache = isRefresh && ageSeconds(fetched.headers) > 0;
  const copy = copyOf(request, started, {
    value: parsed.value,
    headers: fetched.headers,
    unchanged,
    fromCache,
  });
  keep(request, copy);
  logFetched(request, 'warning' in parsed ? parsed.warning : undefined);
  return { ok: true, copy };
}

function logFetched({ state, kind, url }: FetchRequest<unknown>, warning: string | undefined): void {
  const { logger, instruments } = state.options;
  instruments?.fetched?.(kind.name, undefined);
  const fields = { url, document: kind.name };
  if (warning === undefined) logger.debug(fields, 'key document fetched');
  else logger.warn(fields, warning);
}

/** A fetch that was overtaken by a later one changes nothing. */
function keep<T>({ kind, entry }: FetchRequest<T>, copy: Copy<T>): void {
  entry.failure = undefined;
  if (entry.copy !== undefined && entry.copy.fetchNumber >= copy.fetchNumber) return;
  kind.onReplaced?.(copy, entry.copy);
  entry.copy = copy;
}

/** Reads the document, and compares it with the copy in force. */
function parse<T>({ state, kind, url, entry }: FetchRequest<T>, bytes: Uint8Array): Parsed<T> {
  const parsed = kind.parse(bytes, url);
  const inForce = usableCopy(state, entry);
  const reason = parsed.ok && inForce ? kind.rejectsUpdate?.(parsed.value, inForce.value) : undefined;
  return reason === undefined ? parsed : { ok: false, reason };
}

/** RFC 9110 §13.1: both, for servers that know only one; the tag decides where it is understood. */
function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

interface FetchedDocument<T> {
  readonly value: T;
  readonly headers: Extract<Fetched, { ok: true }>['headers'];
  /** The copy that the server said was still the document. */
  readonly unchanged: Copy<T> | undefined;
  /** A cache on the way answered, and was not told to ask the server itself. */
  readonly fromCache: boolean;
}

function copyOf<T>(
  { state, kind }: FetchRequest<T>,
  { began, fetchNumber }: Started,
  { value, headers, unchanged, fromCache }: FetchedDocument<T>,
): Copy<T> {
  const { limits, random = Math.random } = state.options;
  const due = kind.dueAt?.(value, began);
  const rules = kind.life ?? KEY_DOCUMENT_LIFE;
  // A 304 that says nothing of the lifetime leaves it as it was (RFC 9111 §4.3.4).
  const defaultMs = unchanged ? unchanged.freshUntil - unchanged.fetchedAt : rules.defaultMs;
  const freshUntil = due ?? began + lifetimeMs(headers, { ...rules, defaultMs });
  const validators = { ...unchanged?.validators, ...validatorsOf(headers) };
  return {
    value,
    fetchedAt: began,
    fetchNumber,
    freshUntil,
    hardUntil: began + (kind.hardLimitMs ?? limits.hardLimitMs),
    // A document that names the moment of its next issue has nothing new before it.
    ...(due === undefined && { refreshAt: began + refreshAfterMs(freshUntil - began, random) }),
    ...(Object.keys(validators).length > 0 && { validators }),
    ...((unchanged !== undefined || fromCache) && { isRevalidated: true }),
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

function recordFailure<T>(
  { state, kind, url, entry }: FetchRequest<T>,
  code: 'key_fetch_failing' | 'key_document_invalid',
  why: string,
): CopyResult<T> {
  // Our own stop ended it, which is no failure of the server.
  if (state.stopped) return { ok: false, reason: 'stopped' };
  const { now, raiseAlarm, instruments } = state.options;
  instruments?.fetched?.(kind.name, code);
  const reason = printableText(why, MAX_REASON);
  const failures = (entry.failure?.count ?? 0) + 1;
  const at = now();
  const failingSince = entry.failure?.since ?? at;
  entry.failure = { reason, at, backOffMs: backOffMs(failures), count: failures, since: failingSince };
  const next = usableCopy(state, entry)
    ? 'The earlier copy serves until its hard limit'
    : 'There is no earlier copy';
  const message = `${kind.name} at ${printableName(url, MAX_URL_BYTES)}: ${reason}. ${next}.`;
  raiseAlarm({ code, message, url, document: kind.name, failures, failingSince });
  return { ok: false, reason };
}
