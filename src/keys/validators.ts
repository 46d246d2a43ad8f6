// Validators of a fetched document, and the conditional headers made of them (RFC 9110 §8.8, §13.1).
// Called by `document.ts` for refreshes.

/** Values from a server by which it can be asked if a copy is still the document (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** Longest validator: no honest one is longer, and it is sent back with every refresh. */
const MAX_VALIDATOR = 1000;

/**
 * Conditional headers (RFC 9110 §13.1): both, for servers that know only one. A server that understands the
 * tag uses it.
 */
export function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

/**
 * Validators of an answer, and those of the earlier one if nothing has changed; those that are too long are
 * left out.
 */
export function validatorsOf(headers: Headers, before?: Validators): Validators {
  const etag = headers.get('etag');
  const lastModified = headers.get('last-modified');
  return {
    ...before,
    ...(etag !== null && etag.length <= MAX_VALIDATOR && { etag }),
    ...(lastModified !== null && lastModified.length <= MAX_VALIDATOR && { lastModified }),
  };
}
