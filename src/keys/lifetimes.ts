/**
 * How long a copy of a key document is used (verification.md §5.17), and how long a failure is remembered (§5.19).
 * The document cache calls it, and `keys check` says by it what a receiver does.
 */

/** How long a copy is used without asking again, in ms: what the server's `Cache-Control` may choose between. */
export interface LifeRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Where the server says nothing. */
  readonly defaultMs: number;
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

export const clampLifetime = (ms: number): number => Math.min(Math.max(ms, MIN_LIFE_MS), MAX_LIFE_MS);

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
