// Validators of a fetched document, and the conditional headers made from them (RFC 9110 §8.8, §13.1).
// Called by `document.ts` for refreshes.

/** Values from a server with which a request can ask if the copy is still current (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** Longest validator that is kept. Genuine ones are shorter, and it is sent with every refresh. */
const MAX_VALIDATOR = 1000;

/**
 * Returns conditional headers (RFC 9110 §13.1). Both are sent, because some servers know only one; a server that
 * knows the tag uses the tag.
 */
export function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

/**
 * Returns the validators of a response, together with the earlier ones if the document has not changed. Too long
 * ones are left out.
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
