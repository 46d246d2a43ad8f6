// Reads the `Retry-After` header of an answer (RFC 9110 §10.2.3).
// Called by calls to sellers and to the registry.

/**
 * Returns the time in ms that a `Retry-After` header asks to wait (RFC 9110 §10.2.3). The header has a number of
 * seconds, or a date that begins with the name of a weekday. Undefined for anything else.
 * @param now Unix ms.
 */
export function retryAfterMs(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER);
  const at = /^[A-Z][a-z]{2,8}, /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}
