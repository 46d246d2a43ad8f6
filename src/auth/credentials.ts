// Reads and compares secrets and tokens of legacy schemes in constant time (verification.md §6).
// Called by the schemes, proofs of control, notification tokens and registrations.

import type { Hashes } from '../crypto/engine.ts';
import { equalBytes } from '../crypto/equal.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';

/** The header in which client libraries of the agent transport send the token of a push registration. */
export const PUSH_TOKEN_FIELD = 'x-a2a-notification-token';

/** Returns the sender's HMAC secrets: those for all deliveries, or those for delivery reports only. */
export function hmacSecretsOf(auth: AuthPolicy): readonly string[] {
  if (auth.scheme === 'hmac') return auth.secrets;
  return (auth.scheme === 'signature' && auth.reportSecrets) || [];
}

/** Matches `Bearer` in any case (RFC 9110 §11.1), spaces, and a token of any characters. */
const CREDENTIALS = /^bearer +(\S.*)$/i;

/** Returns the token of an `Authorization` line; undefined if the line has none. */
export function bearerToken(line: string): string | undefined {
  return CREDENTIALS.exec(line)?.[1];
}

/**
 * Returns a function that compares a received credential with the accepted ones. All are compared, by hashes of equal
 * length, so that the time reveals neither a near match nor a length.
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
