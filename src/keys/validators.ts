// Validators of a fetched document, and the conditional headers made from them (RFC 9110 §8.8, §13.1).
// Called by `document.ts` for refreshes.

/** Header values of a response with which a later request can ask if the document has changed (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/**
 * The maximum number of characters of a validator that is kept. Genuine validators are shorter, and each is sent with
 * every refresh.
 */
const MAX_VALIDATOR = 1000;

/**
 * Returns conditional headers (RFC 9110 §13.1). Both headers are sent, because some servers know only one. A server
 * that knows the entity tag uses the tag.
 */
export function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

/**
 * Returns the validators of a response. Values that are too long are left out.
 * @param before validators of the earlier response, if a 304 confirmed it; the new ones replace them.
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
