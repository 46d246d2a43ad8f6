/** `Bearer`, any case (RFC 9110 §11.1), spaces, and a token that may be anything its owner chose. */
const CREDENTIALS = /^bearer +(\S.*)$/i;

/** The token of an `Authorization` line, or undefined where it has none. */
export function bearerToken(line: string): string | undefined {
  return CREDENTIALS.exec(line)?.[1];
}
