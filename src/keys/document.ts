// Defines a key document (its kind and copies) and performs one fetch of it (verification.md §5.4, §5.18, §5.19).
// Called by `document-cache.ts`, which decides when a fetch starts.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger } from '../shared/logging.ts';
import { MAX_URL_BYTES, printableName, printableText } from '../codec/printable.ts';
import type { Instruments } from '../receiver/instruments.ts';
import { requestsMayShare } from '../shared/single-flight.ts';
import type { KeyFetch } from './key-resolver.ts';
import {
  backOffMs,
  KEY_DOCUMENT_LIFE,
  type LifeRules,
  ageSeconds,
  lifetimeMs,
  refreshAfterMs,
} from './lifetimes.ts';
import { type FetchBudget, fetchDocument, type Fetched, type FetchRules } from './safe-fetch.ts';
import { conditions, type Validators, validatorsOf } from './validators.ts';

/** The result of parsing a document. `reason` is for the owner's log and quotes nothing of the document. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T; readonly warning?: string; readonly mixedUntil?: number }
  | { readonly ok: false; readonly reason: string };

/** A kind of key document: its largest size, its parser, and how long a fetched copy may be used. */
export interface DocumentKind<T> {
  /** The name of the kind in logs and alarms, e.g. `JWKS`. */
  readonly name: string;
  readonly maxBytes: number;
  /** A copy may be used for this time (ms) after its fetch began, if refreshes fail. Default: the cache's limit. */
  readonly hardLimitMs?: number;
  /** The limits of a copy's lifetime. Default: `KEY_DOCUMENT_LIFE`. */
  readonly life?: LifeRules;
  /** True if HTTP redirects of the document are followed, within the registrable domain. */
  readonly redirects?: boolean;
  /** Wraps the fetch to replace some responses, e.g. one that says that there is no such document. */
  readonly through?: (fetchUrl: KeyFetch) => KeyFetch;
  /** Returns a second URL, used if the first one answers 404 (then without an alarm) and no copy is cached. */
  elsewhere?(url: string): Promise<string | undefined>;
  /** Parses a fetched document. Never throws. */
  parse(bytes: Uint8Array, url: string): Parsed<T>;
  /**
   * Returns `value` plus those parts of the copy `inForce` that the new document broke (e.g. a key), and a warning.
   * `mixedUntil`: the time when these parts expire, Unix ms, like `now`. Undefined if no part is kept. Never throws.
   */
  keeps?(
    value: T,
    inForce: Copy<T>,
    now: number,
  ): { readonly value: T; readonly warning: string; readonly mixedUntil: number } | undefined;
  /** Returns the time (Unix ms) of the next fetch, if the content determines it. Absent: `Cache-Control` does. */
  dueAt?(value: T, began: number): number;
  /** Called when a new copy is stored. `before` may be past its hard limit. Never throws. */
  onReplaced?(copy: Copy<T>, before: Copy<T> | undefined): void;
}

/** The time and number of one fetch. */
export interface FetchMoment {
  /** Start of the fetch, Unix ms. */
  readonly fetchedAt: number;
  /** The number of the fetch in this cache: 1 is the first. It orders two fetches where the clock cannot. */
  readonly fetchNumber: number;
  /**
   * True if the server answered 304, or a cache on the way answered. Such a copy proves no key missing: a cache can be
   * half an hour old, a validator as coarse as a second. A key wrongly called missing loses an event.
   */
  readonly isRevalidated?: boolean;
}

/** A document as one fetch returned it. */
export interface Copy<T> extends FetchMoment {
  readonly value: T;
  /** The time (Unix ms) until which the copy is used without another request. */
  readonly freshUntil: number;
  /** The time (Unix ms) until which the copy may be used while refreshes fail. */
  readonly hardUntil: number;
  /** The time (Unix ms) from which a use of the copy starts a background refresh. Absent: no early refresh. */
  readonly refreshAt?: number;
  readonly validators?: Validators;
}

/** A copy that may be used, or the reason why there is none. */
export type CopyResult<T> =
  | { readonly ok: true; readonly copy: Copy<T> }
  | {
      readonly ok: false;
      readonly reason: string;
      /** Set after a 404 if the document has a second URL: that `url`, and the fetch that was answered 404. */
      readonly elsewhere?: { readonly url: string; readonly absence: FetchMoment };
    };

/** A caller's requirements on a copy: it has a wanted value, or is new enough to prove that there is none. */
export interface Freshness<T> {
  /** True if the copy contains the wanted value, however old the copy is. */
  readonly hasWanted: (copy: Copy<T>) => boolean;
  /** True if a copy of this fetch is recent enough to prove that the wanted value does not exist. */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** True to ignore the cooldown, for a caller that rarely fetches. Such fetches start no cooldown for others. */
  readonly ignoresCooldown?: boolean;
}

/** True if less than `span` ms have passed since `then`. False if the clock was set back: no wait may take hours. */
export function isWithin(now: number, then: number, span: number): boolean {
  return now >= then && now - then < span;
}

export interface CacheLimits {
  /** The time in ms, from the start of its fetch, for which a copy may be used while refreshes fail. */
  readonly hardLimitMs: number;
  /** The minimum ms between two fetches of one URL that look for a missing value (not because a copy expired). */
  readonly cooldownMs: number;
  /** The time in ms that a delivery waits for a refresh if the expired copy may still be used. */
  readonly patienceMs: number;
  readonly maxDocuments: number;
  /** The maximum memory of all documents in bytes, estimated. Above it, the least recently used are dropped. */
  readonly maxBytes?: number;
}

export interface CacheOptions extends FetchRules {
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  readonly limits: CacheLimits;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  readonly instruments?: Pick<Instruments, 'fetched'>;
  /** Returns a random number in [0, 1), by which background refreshes are spread over time. Default: `Math.random`. */
  readonly random?: () => number;
}

/** The state of the cache for one document kind and URL. */
export interface Entry<T> {
  copy: Copy<T> | undefined;
  failure: Failure | undefined;
  /**
   * The start (Unix ms) of the last fetch that was made to find a missing value, successful or not. The cooldown
   * counts from it. Also set to the start of the first fetch, if its copy lacked the wanted value.
   */
  refetched: number | undefined;
  /** The start of the last fetch for any reason, Unix ms. */
  lastBegan: number | undefined;
  /** The memory of the copy in bytes, estimated from its text. */
  heldBytes: number;
  /** The fetch that callers may wait for. Always undefined on runtimes where requests cannot share one. */
  running: Running<T> | undefined;
}

interface Failure {
  readonly reason: string;
  /** The time of the last failure, Unix ms. */
  readonly at: number;
  readonly backOffMs: number;
  /** The number of consecutive failures. */
  readonly count: number;
  /** The time of the first of the consecutive failures, Unix ms. */
  readonly since: number;
  /** The last of the consecutive failures that was a 404 while no copy could be used; undefined if none was. */
  readonly absence: FetchMoment | undefined;
}

interface Started {
  /** The start of the fetch, Unix ms. */
  readonly began: number;
  readonly fetchNumber: number;
  readonly controller: AbortController;
}

export interface Running<T> extends Started {
  /** Settles when the fetch has ended. Never rejects. */
  readonly result: Promise<CopyResult<T>>;
}

export interface CacheState {
  readonly options: CacheOptions;
  /** The cache entries by kind and URL (`keyOf`), the least recently used first. */
  readonly entries: Map<string, Entry<unknown>>;
  fetchCount: number;
  /** The estimated memory of all entries, in bytes. */
  heldBytes: number;
  /** The bytes that documents need in addition to their copies, by `keyOf`; `reservedBytes` is the sum. */
  readonly reserved: Map<string, number>;
  reservedBytes: number;
  readonly noteSize: (key: string, entry: Entry<unknown>, bytes: number) => void;
  stopped: boolean;
}

/** After this many deadlines a fetch is given up. Some runtimes never settle it, which would block its URL. */
const GONE_AFTER_DEADLINES = 3;

/** The request header that makes caches on the way ask the server itself (RFC 9111 §5.2.1.4). */
const END_TO_END: Readonly<Record<string, string>> = { 'cache-control': 'no-cache' };

/**
 * The reason for a fetch. `refresh`: the copy's lifetime is over or nearly over, and a 304 is sufficient. `renewal`:
 * the copy lacks a needed value, so the whole document is requested from its server.
 */
export type Purpose = 'refresh' | 'renewal';

/** The parameters of a fetch: a document kind and URL, their cache entry, and the caller's limits. */
export interface FetchRequest<T> {
  readonly state: CacheState;
  readonly kind: DocumentKind<T>;
  readonly url: string;
  readonly entry: Entry<T>;
  readonly budget: FetchBudget;
}

/** Returns the running fetch of this URL, if there is one that the caller can wait for. */
export function runningFetch<T>(
  { now, deadlineMs }: CacheOptions,
  { running }: Entry<T>,
): Running<T> | undefined {
  const isAlive = running !== undefined && isWithin(now(), running.began, deadlineMs * GONE_AFTER_DEADLINES);
  return isAlive ? running : undefined;
}

/** Returns the cached copy of a document if it may still be used (until `hardUntil`); otherwise undefined. */
export function usableCopy<T>(state: CacheState, { copy }: Entry<T>): Copy<T> | undefined {
  return copy !== undefined && state.options.now() < copy.hardUntil ? copy : undefined;
}

/** Starts a fetch. Call it only if a fetch is due and no running one can be waited for. */
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
  const { kind, url, entry, budget } = request;
  const isRefresh = purpose === 'refresh';
  const known = isRefresh ? entry.copy : undefined;
  const headers = isRefresh ? conditions(known?.validators) : END_TO_END;
  const target = { url, maxBytes: kind.maxBytes, seller: budget.seller, redirects: kind.redirects };
  const fetched = await fetchDocument(rulesFor(request), target, started.controller, headers);
  if (entry.running?.fetchNumber === started.fetchNumber) entry.running = undefined;
  if (!fetched.ok) return await recordFailure(request, started, 'key_fetch_failing', fetched);
  const unchanged = fetched.notModified === true ? known : undefined;
  const parsed: Parsed<T> = unchanged ? { ok: true, value: unchanged.value } : parse(request, fetched.bytes);
  if (!parsed.ok) return await recordFailure(request, started, 'key_document_invalid', parsed);
  const fromCache = isRefresh && ageSeconds(fetched.headers) > 0;
  const copy = copyOf(request, started, {
    value: parsed.value,
    headers: fetched.headers,
    unchanged,
    fromCache,
    validators: validatorsBy(parsed, fetched.headers, unchanged),
    mixedUntil: parsed.mixedUntil,
  });
  keep(request, copy, fetched);
  logFetched(request, parsed.warning);
  return { ok: true, copy };
}

const validatorsBy = (parsed: object, headers: Headers, unchanged: Copy<unknown> | undefined): Validators =>
  'mixedUntil' in parsed ? {} : validatorsOf(headers, unchanged?.validators);

function rulesFor({ state: { options }, kind }: FetchRequest<unknown>): FetchRules {
  return kind.through === undefined ? options : { ...options, fetch: kind.through(options.fetch) };
}

function logFetched({ state, kind, url }: FetchRequest<unknown>, warning: string | undefined): void {
  const { logger, instruments, raiseAlarm } = state.options;
  instruments?.fetched?.(kind.name, undefined);
  const fields = { url, document: kind.name };
  logger.debug(fields, 'key document fetched');
  if (warning === undefined) return;
  const message = `${kind.name} at ${printableName(url, MAX_URL_BYTES)}: ${warning}.`;
  raiseAlarm({ code: 'key_document_invalid', message, ...fields });
}

/** Returns the key of a cache entry. It contains the kind's name: one URL may serve several kinds. */
export function keyOf({ name }: Pick<DocumentKind<unknown>, 'name'>, url: string): string {
  return `${name} ${url}`;
}

/** Stores a copy in the cache entry, unless a fetch that began later has already stored one. */
function keep<T>(
  { state, kind, url, entry }: FetchRequest<T>,
  copy: Copy<T>,
  { bytes, notModified }: Extract<Fetched, { ok: true }>,
): void {
  entry.failure = undefined;
  if (entry.copy !== undefined && entry.copy.fetchNumber >= copy.fetchNumber) return;
  kind.onReplaced?.(copy, entry.copy);
  entry.copy = copy;
  if (notModified !== true) state.noteSize(keyOf(kind, url), entry, bytes.length);
}

/** Parses a fetched document. Adds parts of the usable cached copy that the document broke, e.g. a key. */
function parse<T>({ state, kind, url, entry }: FetchRequest<T>, bytes: Uint8Array): Parsed<T> {
  const parsed = kind.parse(bytes, url);
  const inForce = usableCopy(state, entry);
  const mixed = parsed.ok && inForce ? kind.keeps?.(parsed.value, inForce, state.options.now()) : undefined;
  return mixed === undefined ? parsed : { ok: true, ...mixed };
}

interface FetchedDocument<T> {
  readonly value: T;
  readonly headers: Extract<Fetched, { ok: true }>['headers'];
  /** The previous copy, if the server answered 304; otherwise undefined. */
  readonly unchanged: Copy<T> | undefined;
  /** True if a cache on the way may have answered a refresh without asking the server. */
  readonly fromCache: boolean;
  /** Validators for the next request. Empty if parts come from an earlier copy: a 304 would keep them for ever. */
  readonly validators: Validators;
  /** The time (Unix ms) at which parts from an earlier copy expire, and with them the whole copy. */
  readonly mixedUntil?: number | undefined;
}

function copyOf<T>(
  { state, kind }: FetchRequest<T>,
  { began, fetchNumber }: Started,
  { value, headers, unchanged, fromCache, validators, mixedUntil = Infinity }: FetchedDocument<T>,
): Copy<T> {
  const { limits, random = Math.random } = state.options;
  const due = kind.dueAt?.(value, began);
  const rules = kind.life ?? KEY_DOCUMENT_LIFE;
  // A 304 that states no lifetime leaves the lifetime unchanged (RFC 9111 §4.3.4).
  const defaultMs = unchanged ? unchanged.freshUntil - unchanged.fetchedAt : rules.defaultMs;
  const freshUntil = Math.min(due ?? began + lifetimeMs(headers, { ...rules, defaultMs }), mixedUntil);
  return {
    value,
    fetchedAt: began,
    fetchNumber,
    freshUntil,
    hardUntil: Math.min(began + (kind.hardLimitMs ?? limits.hardLimitMs), mixedUntil),
    // A document that names the time of its next issue does not change before, so no early refresh is needed.
    ...(due === undefined && { refreshAt: began + refreshAfterMs(freshUntil - began, random) }),
    ...(Object.keys(validators).length > 0 && { validators }),
    ...((unchanged !== undefined || fromCache) && { isRevalidated: true }),
  };
}

/** The maximum number of code points of a reason. It is limited, because it may quote a counterparty. */
const MAX_REASON = 300;

/** The reason with which running fetches are aborted when the cache is stopped. */
export const STOPPED: Error = new Error('stopped');

async function recordFailure<T>(
  request: FetchRequest<T>,
  { began, fetchNumber, controller }: Started,
  code: 'key_fetch_failing' | 'key_document_invalid',
  failed: { readonly reason: string; readonly isAbsent?: boolean },
): Promise<CopyResult<T>> {
  const { state, kind, url, entry } = request;
  // The fetch ended because this process stopped the cache, not because the server failed.
  if (controller.signal.reason === STOPPED) return { ok: false, reason: 'stopped' };
  const { now, raiseAlarm, instruments } = state.options;
  instruments?.fetched?.(kind.name, code);
  const reason = printableText(failed.reason, MAX_REASON);
  const { count = 0, since = now(), absence: before } = entry.failure ?? {};
  const failures = count + 1;
  const copy = usableCopy(state, entry);
  const isAbsent = failed.isAbsent === true && copy === undefined;
  entry.failure = {
    reason,
    at: now(),
    backOffMs: backOffMs(failures),
    count: failures,
    since,
    absence: isAbsent ? { fetchedAt: began, fetchNumber } : before,
  };
  const result = await failureOf(request, reason);
  if (isAbsent && result.elsewhere !== undefined) return result;
  const next = copy ? 'The earlier copy serves until its hard limit' : 'There is no earlier copy';
  const message = `${kind.name} at ${printableName(url, MAX_URL_BYTES)}: ${reason}. ${next}.`;
  raiseAlarm({ code, message, url, document: kind.name, failures, failingSince: since });
  return result;
}

/** Returns a failed result, with the document's second URL if one of the failures in a row was a 404. */
export const failureOf = async <T>(
  { state, kind, url, entry }: Omit<FetchRequest<T>, 'budget'>,
  reason: string,
): Promise<Failed<T>> =>
  failedFetch(kind, url, reason, usableCopy(state, entry) === undefined ? entry.failure?.absence : undefined);

type Failed<T> = Extract<CopyResult<T>, { ok: false }>;

/** Returns a failed result. With `absence` (a fetch that got a 404), it contains the document's second URL, if any. */
export async function failedFetch<T>(
  kind: DocumentKind<T>,
  url: string,
  reason: string,
  absence: FetchMoment | undefined,
): Promise<Failed<T>> {
  const other = absence && (await kind.elsewhere?.(url));
  return { ok: false, reason, ...(absence && other !== undefined && { elsewhere: { url: other, absence } }) };
}
