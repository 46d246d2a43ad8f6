// Lifetimes of key documents, and back-off after failed fetches (verification.md §5.17, §5.19).
// Called by the document cache; `keys check` of the command line uses it to explain a receiver's behaviour.

/**
 * The limits, in ms, of the time for which a copy is used without another request. Within these limits the server's
 * `Cache-Control` decides.
 */
export interface LifeRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** The lifetime of a copy if the response has no `max-age`. */
  readonly defaultMs: number;
}

/**
 * The shortest and the longest lifetime of a copy, whatever `Cache-Control` says (verification.md §5.17). Only
 * adagents.json has a longer maximum.
 */
export const MIN_LIFE_MS: number = 60_000;
export const MAX_LIFE_MS: number = 30 * 60_000;

export const KEY_DOCUMENT_LIFE: LifeRules = {
  minMs: MIN_LIFE_MS,
  maxMs: MAX_LIFE_MS,
  // Long enough to spare a server without `max-age`, short enough that a removed key soon stops verifying.
  defaultMs: 5 * 60_000,
};

/** A background refresh starts at a random point between 72 % and 80 % of a copy's lifetime. */
const REFRESH_FROM = 0.72;
const REFRESH_SPREAD = 0.08;

/**
 * The time until a failed fetch is repeated. It grows to at most 60 s (verification.md §5.19), and begins with only 1
 * s, because sellers retry soon.
 */
const FIRST_BACK_OFF_MS = 1_000;
const MAX_BACK_OFF_MS = 60_000;

export const clampLifetime = (ms: number): number => Math.min(Math.max(ms, MIN_LIFE_MS), MAX_LIFE_MS);

/** Returns the time in ms for which a response may be used without another request (RFC 9111 §5.2.2, §5.1). */
export function lifetimeMs(headers: Headers, rules: LifeRules = KEY_DOCUMENT_LIFE): number {
  const control = (headers.get('cache-control') ?? '').toLowerCase();
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/.test(control)) return rules.minMs;
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,10})/.exec(control)?.[1];
  if (maxAge === undefined) return rules.defaultMs;
  return Math.min(Math.max((Number(maxAge) - ageSeconds(headers)) * 1000, rules.minMs), rules.maxMs);
}

/** Returns the seconds for which a cache on the way has held the response (RFC 9111 §5.1). 0 if no cache says so. */
export function ageSeconds(headers: Headers): number {
  return Number(/^\d{1,10}$/.exec(headers.get('age') ?? '')?.[0] ?? '0');
}

/**
 * Returns the time in ms after which a copy is refreshed in the background. It is random, so that replicas that
 * started together do not always refresh together.
 * @param random returns a number in [0, 1).
 */
export function refreshAfterMs(lifeMs: number, random: () => number): number {
  return lifeMs * (REFRESH_FROM + REFRESH_SPREAD * random());
}

/** Returns the time in ms for which a URL that failed `failures` times in a row is not fetched. */
export function backOffMs(failures: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
}
