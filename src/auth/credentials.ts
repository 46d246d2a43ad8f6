import type { Hashes } from '../crypto/engine.ts';
import { equalBytes } from '../crypto/equal.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';

/** The field in which kits of the agent transport send the token of a push registration. */
export const PUSH_TOKEN_FIELD = 'x-a2a-notification-token';

/** Secrets of the sender's HMAC: all its own, or those for its reports. */
export function hmacSecretsOf(auth: AuthPolicy): readonly string[] {
  if (auth.scheme === 'hmac') return auth.secrets;
  return (auth.scheme === 'signature' && auth.reportSecrets) || [];
}

/** `Bearer`, any case (RFC 9110 §11.1), spaces, and a token that may be anything its owner chose. */
const CREDENTIALS = /^bearer +(\S.*)$/i;

/** The token of an `Authorization` line, or undefined where it has none. */
export function bearerToken(line: string): string | undefined {
  return CREDENTIALS.exec(line)?.[1];
}

/**
 * Compares a credential that came with those that are accepted. Every one is compared, by hashes of one length, so that
 * time tells neither which of them came close nor how long they are.
 */
export function comparedWith(credential: string, hashes: Hashes): (accepted: readonly string[]) => boolean {
  const encoder = new TextEncoder();
  const digest = (text: string): Uint8Array => hashes.sha256(encoder.encode(text));
  const wanted = digest(credential);
  return (accepted) => {
    let found = false;
    for (const one of accepted) if (equalBytes(wanted, digest(one))) found = true;
    return found;
  };
}
