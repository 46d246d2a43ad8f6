/** What became of a document's bytes. `reason` is for the owner's log and quotes nothing of the document. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T; readonly warning?: string }
  | { readonly ok: false; readonly reason: string };

/** How long a copy is used without asking again, in ms: what the server's `Cache-Control` may choose between. */
export interface LifeRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Where the server says nothing. */
  readonly defaultMs: number;
}

/** What a server gave to ask it by whether a copy is still the document (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** One kind of key document: how large it may be, how it is read, how long a copy serves. */
export interface DocumentKind<T> {
  /** For logs and alarms, e.g. `JWKS`. */
  readonly name: string;
  readonly maxBytes: number;
  /** Ms after the fetch began for which a copy may serve while refreshes fail; the cache's own limit where absent. */
  readonly hardLimitMs?: number;
  /** `KEY_DOCUMENT_LIFE` where absent. */
  readonly life?: LifeRules;
  /** Never throws. */
  parse(bytes: Uint8Array, url: string): Parsed<T>;
  /** Why `value`, sound as it looks, must not take the place of the copy in force. Never throws. */
  rejectsUpdate?(value: T, inForce: T): string | undefined;
  /** Unix ms at which the next copy is due, where the document says so itself; else `Cache-Control` decides. */
  dueAt?(value: T, began: number): number;
  /** A copy takes the place of another, which may be past its hard limit. Never throws. */
  onReplaced?(copy: Copy<T>, before: Copy<T> | undefined): void;
}

/** A document as one fetch brought it. */
export interface Copy<T> {
  readonly value: T;
  /** When its fetch began, Unix ms. */
  readonly fetchedAt: number;
  /** Place of its fetch among all that the cache began: decides "before or after" where the clock cannot. */
  readonly fetchNumber: number;
  /** Unix ms until which it is used without asking again. */
  readonly freshUntil: number;
  /** Unix ms until which it may serve while refreshes fail. */
  readonly hardUntil: number;
  /** Unix ms from which its next use begins a refresh in the background; none where absent. */
  readonly refreshAt?: number;
  readonly validators?: Validators;
  /**
   * The server did not send the document again but said that it had not changed (304), or a cache on the way sent what
   * it held. Good enough to serve on; too little to call a key unknown: validators can be as coarse as a second, caches
   * half an hour behind, and a wrong "unknown" ends an event.
   */
  readonly isRevalidated?: boolean;
}

/** A usable copy, or why there is none. */
export type CopyResult<T> =
  { readonly ok: true; readonly copy: Copy<T> } | { readonly ok: false; readonly reason: string };

/** How fresh a copy a caller needs, beyond the copy's own lifetime. */
export interface Freshness<T> {
  /** The copy has what is looked for, however old it is. */
  readonly hasWanted: (copy: Copy<T>) => boolean;
  /** The copy is recent enough to show that what is looked for does not exist. */
  readonly isFreshEnough: (copy: Copy<T>) => boolean;
  /** For a caller that asks too seldom to need the cooldown, and leaves it as it is for others. */
  readonly ignoresCooldown?: boolean;
}

/** verification.md §5.17: `Cache-Control` is honoured within these. */
export const MIN_LIFE_MS: number = 60_000;
export const MAX_LIFE_MS: number = 30 * 60_000;

export const KEY_DOCUMENT_LIFE: LifeRules = {
  minMs: MIN_LIFE_MS,
  maxMs: MAX_LIFE_MS,
  // Long enough to spare a server that says nothing, short enough that a removed key is gone soon.
  defaultMs: 5 * 60_000,
};

/** A copy is refreshed in the background from here to 80 % of its life, each at a moment of its own. */
const REFRESH_FROM = 0.72;
const REFRESH_SPREAD = 0.08;

/** verification.md §5.19: failures are remembered at most 60 s. The first one only 1 s, for sellers retry soon. */
const FIRST_BACK_OFF_MS = 1_000;
const MAX_BACK_OFF_MS = 60_000;

export function clampLifetime(ms: number): number {
  return Math.min(Math.max(ms, MIN_LIFE_MS), MAX_LIFE_MS);
}

/** Ms for which an answer may be used without asking again (RFC 9111 §5.2.2, §5.1). */
export function lifetimeMs(headers: Headers, rules: LifeRules = KEY_DOCUMENT_LIFE): number {
  const control = (headers.get('cache-control') ?? '').toLowerCase();
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/.test(control)) return rules.minMs;
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,10})/.exec(control)?.[1];
  if (maxAge === undefined) return rules.defaultMs;
  return Math.min(Math.max((Number(maxAge) - ageSeconds(headers)) * 1000, rules.minMs), rules.maxMs);
}

/** Seconds for which a cache on the way had held the answer (RFC 9111 §5.1); 0 where none says so. */
export function ageSeconds(headers: Headers): number {
  return Number(/^\d{1,10}$/.exec(headers.get('age') ?? '')?.[0] ?? '0');
}

/**
 * Ms of its life after which a copy is refreshed in the background. With jitter, so that replicas which started together
 * do not ask together each time.
 * @param random in [0, 1).
 */
export function refreshAfterMs(lifeMs: number, random: () => number): number {
  return lifeMs * (REFRESH_FROM + REFRESH_SPREAD * random());
}

/** Ms during which a URL that failed `failures` times in a row is left alone. */
export function backOffMs(failures: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
}

/** Less than `span` ms since `then`. A clock that was set back says no: what it would hold up could last for hours. */
export function isWithin(now: number, then: number, span: number): boolean {
  return now >= then && now - then < span;
}
