/** What a server gave to ask it by whether a copy is still the document (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** No honest validator is longer, and it is sent back with every refresh. */
const MAX_VALIDATOR = 1000;

/** RFC 9110 §13.1: both, for servers that know only one; the tag decides where it is understood. */
export function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag !== undefined && { 'if-none-match': validators.etag }),
    ...(validators?.lastModified !== undefined && { 'if-modified-since': validators.lastModified }),
  };
}

/** Of an answer, and of the one before where it says that nothing has changed; what is too long is left out. */
export function validatorsOf(headers: Headers, before?: Validators): Validators {
  const etag = headers.get('etag');
  const lastModified = headers.get('last-modified');
  return {
    ...before,
    ...(etag !== null && etag.length <= MAX_VALIDATOR && { etag }),
    ...(lastModified !== null && lastModified.length <= MAX_VALIDATOR && { lastModified }),
  };
}
