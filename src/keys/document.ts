// One key document: its kind, its copies, and one fetch of it (verification.md §5.4, §5.18, §5.19).
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

/** Result of parsing. `reason` is for the owner's log and quotes nothing of the document. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T; readonly warning?: string; readonly mixedUntil?: number }
  | { readonly ok: false; readonly reason: string };

/** A kind of key document: its largest size, its parser, and how long a copy serves. */
export interface DocumentKind<T> {
  /** For logs and alarms, e.g. `JWKS`. */
  readonly name: string;
  readonly maxBytes: number;
  /** A copy may be used this long after its fetch began while refreshes fail. Ms. Default: the cache's limit. */
  readonly hardLimitMs?: number;
  /** Default: `KEY_DOCUMENT_LIFE`. */
  readonly life?: LifeRules;
  /** True if its redirects are followed, within the registrable domain. */
  readonly redirects?: boolean;
  /** Wraps the fetch, to change some answers, e.g. one that says that there is no such document. */
  readonly through?: (fetchUrl: KeyFetch) => KeyFetch;
  /** Returns a second URL, used if the first answers 404 and no copy is cached; such a 404 raises no alarm. */
  elsewhere?(url: string): Promise<string | undefined>;
  /** Never throws. */
  parse(bytes: Uint8Array, url: string): Parsed<T>;
  /** Adds parts of the copy in force to the new value; says why and until when. Never throws. @param now Unix ms. */
  keeps?(
    value: T,
    inForce: Copy<T>,
    now: number,
  ): { readonly value: T; readonly warning: string; readonly mixedUntil: number } | undefined;
  /** Unix ms at which the next copy is due, if the document says so; otherwise `Cache-Control` decides. */
  dueAt?(value: T, began: number): number;
  /** Called when a copy replaces another, which may be past its hard limit. Never throws. */
  onReplaced?(copy: Copy<T>, before: Copy<T> | undefined): void;
}

/** The time and number of one fetch. */
export interface FetchMoment {
  /** Start of the fetch, Unix ms. */
  readonly fetchedAt: number;
  /** Number among the cache's fetches. It tells which of two fetches began first if the clock cannot. */
  readonly fetchNumber: number;
  /**
   * True for a 304, or an answer from a cache in between. Such a copy may be used, but proves no key unknown.
   * Validators can be as coarse as a second, and caches half an hour old. A wrong "unknown" ends an event.
   */
  readonly isRevalidated?: boolean;
}

/** A document as one fetch returned it. */
export interface Copy<T> extends FetchMoment {
  readonly value: T;
  /** Until this time (Unix ms) the copy is used without another request. */
  readonly freshUntil: number;
  /** Until this time (Unix ms) the copy may be used while refreshes fail. */
  readonly hardUntil: number;
  /** From this time (Unix ms) the next use starts a background refresh; without it, none is started. */
  readonly refreshAt?: number;
  readonly validators?: Validators;
}

/** A usable copy, or the reason why there is none. */
export type CopyResult<T> =
  | { readonly ok: true; readonly copy: Copy<T> }
  | {
      readonly ok: false;
      readonly reason: string;
      /** Set after a 404 if the document may be at `url`. */
      readonly elsewhere?: { readonly url: string; readonly absence: FetchMoment };
    };

/** A caller's demand on the freshness of a copy, beyond the copy's own lifetime. */
export interface Freshness<T> {
  /** True if the copy contains the wanted value, however old the copy is. */
  readonly hasWanted: (copy: Copy<T>) => boolean;
  /** True if the copy is recent enough to prove that the wanted value does not exist. */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** True for a caller that asks too seldom to need the cooldown. Its fetches start no cooldown for others. */
  readonly ignoresCooldown?: boolean;
}

/** True if less than `span` ms have passed since `then`. False if the clock was set back: no wait may last hours. */
export function isWithin(now: number, then: number, span: number): boolean {
  return now >= then && now - then < span;
}

export interface CacheLimits {
  /** A copy may be used this long after its fetch began while refreshes fail. Ms. */
  readonly hardLimitMs: number;
  /** Ms between two refetches of one URL that its copies' lifetimes do not demand. */
  readonly cooldownMs: number;
  /** Ms that a delivery waits for the refresh of a copy that may still be used. */
  readonly patienceMs: number;
  readonly maxDocuments: number;
  /** Most memory of all documents in bytes, estimated by text; above it the least recently used are dropped. */
  readonly maxBytes?: number;
}

export interface CacheOptions extends FetchRules {
  /** Unix ms. */
  readonly now: () => number;
  readonly limits: CacheLimits;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  readonly instruments?: Pick<Instruments, 'fetched'>;
  /** In [0, 1): spreads background refreshes. Default: `Math.random`. */
  readonly random?: () => number;
}

/** State of the cache for one URL. */
export interface Entry<T> {
  copy: Copy<T> | undefined;
  failure: Failure | undefined;
  /**
   * Start of the last refetch that the copy's lifetime did not demand, successful or not; Unix ms. Also the start
   * of the first fetch, if the first copy lacked the wanted value.
   */
  refetched: number | undefined;
  /** Start of the last fetch for any purpose, Unix ms. */
  lastBegan: number | undefined;
  /** Memory of the copy, estimated by its text. */
  heldBytes: number;
  /** The fetch that callers may wait for. Undefined on runtimes where requests cannot share one. */
  running: Running<T> | undefined;
}

interface Failure {
  readonly reason: string;
  /** Unix ms. */
  readonly at: number;
  readonly backOffMs: number;
  /** Failures in a row. */
  readonly count: number;
  /** Start of the first failure in this row, Unix ms. */
  readonly since: number;
  /** The last failure in this row that was a 404 while no copy was usable. */
  readonly absence: FetchMoment | undefined;
}

interface Started {
  /** Unix ms. */
  readonly began: number;
  readonly fetchNumber: number;
  readonly controller: AbortController;
}

/** A fetch in progress. */
export interface Running<T> extends Started {
  /** Never rejects. */
  readonly result: Promise<CopyResult<T>>;
}

export interface CacheState {
  readonly options: CacheOptions;
  /** The least recently used comes first. */
  readonly entries: Map<string, Entry<unknown>>;
  fetchCount: number;
  /** Sum over all entries. */
  heldBytes: number;
  /** Memory that documents need in addition to their copies: by document, and in total. */
  readonly reserved: Map<string, number>;
  reservedBytes: number;
  readonly noteSize: (key: string, entry: Entry<unknown>, bytes: number) => void;
  stopped: boolean;
}

/**
 * A fetch older than this many deadlines is given up: the runtime ended its request without settling it. Without
 * this limit its URL would never be fetched again.
 */
const GONE_AFTER_DEADLINES = 3;

/** Makes caches in between ask the server itself (RFC 9111 §5.2.1.4). */
const END_TO_END: Readonly<Record<string, string>> = { 'cache-control': 'no-cache' };

/**
 * Purpose of a fetch. `refresh`: the copy's lifetime is over, and a 304 is sufficient. `renewal`: the copy lacks
 * something, so the whole document is requested from its origin.
 */
export type Purpose = 'refresh' | 'renewal';

/** One kind of document at one URL, its cache entry, and its caller's budget. */
export interface FetchRequest<T> {
  readonly state: CacheState;
  readonly kind: DocumentKind<T>;
  readonly url: string;
  readonly entry: Entry<T>;
  readonly budget: FetchBudget;
}

/** Returns the running fetch of this URL, if there is one that a caller can wait for. */
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

/** Starts a fetch. The caller has found that a fetch is due, and that none is running that it could wait for. */
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

/** The key of an entry: one URL may serve several kinds of document. */
export function keyOf({ name }: Pick<DocumentKind<unknown>, 'name'>, url: string): string {
  return `${name} ${url}`;
}

/** Stores a copy. If a fetch that began later has already stored one, changes nothing. */
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

/** Parses the document, and adds those parts of the copy in force that may still be used. */
function parse<T>({ state, kind, url, entry }: FetchRequest<T>, bytes: Uint8Array): Parsed<T> {
  const parsed = kind.parse(bytes, url);
  const inForce = usableCopy(state, entry);
  const mixed = parsed.ok && inForce ? kind.keeps?.(parsed.value, inForce, state.options.now()) : undefined;
  return mixed === undefined ? parsed : { ok: true, ...mixed };
}

interface FetchedDocument<T> {
  readonly value: T;
  readonly headers: Extract<Fetched, { ok: true }>['headers'];
  /** The previous copy, if the server answered 304. */
  readonly unchanged: Copy<T> | undefined;
  /** True if a cache in between answered, and was not required to ask the server itself. */
  readonly fromCache: boolean;
  /** Empty if the copy contains parts of an earlier one: a 304 would keep those parts for ever. */
  readonly validators: Validators;
  /** Time at which the parts of an earlier copy expire, Unix ms. Then the document is fetched anew, or dropped. */
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
    // If the document names the time of its next issue, it does not change earlier, so no early refresh is needed.
    ...(due === undefined && { refreshAt: began + refreshAfterMs(freshUntil - began, random) }),
    ...(Object.keys(validators).length > 0 && { validators }),
    ...((unchanged !== undefined || fromCache) && { isRevalidated: true }),
  };
}

/** Most code points of a reason, because it may quote a counterparty. */
const MAX_REASON = 300;

/** The abort reason of fetches that are running when the cache is stopped. */
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

/** The failed result, with the document's second URL if the failure was a 404. */
export const failureOf = async <T>(
  { state, kind, url, entry }: Omit<FetchRequest<T>, 'budget'>,
  reason: string,
): Promise<Failed<T>> =>
  failedFetch(kind, url, reason, usableCopy(state, entry) === undefined ? entry.failure?.absence : undefined);

type Failed<T> = Extract<CopyResult<T>, { ok: false }>;

/** @param absence the fetch that was answered 404, if one was. */
export async function failedFetch<T>(
  kind: DocumentKind<T>,
  url: string,
  reason: string,
  absence: FetchMoment | undefined,
): Promise<Failed<T>> {
  const other = absence && (await kind.elsewhere?.(url));
  return { ok: false, reason, ...(absence && other !== undefined && { elsewhere: { url: other, absence } }) };
}
