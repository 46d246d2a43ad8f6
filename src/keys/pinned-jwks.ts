// Parses configured pins, and separates the public members of a JWK from the secret ones (verification.md §5.5).
// Called at construction for each sender's pins, and for every published key.

import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import type { Jwk } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Sender } from '../config/sender-entry.ts';

/** Members of the private half of a key pair (RFC 7518 §6.2.2, §6.3.2). */
const PRIVATE_HALF: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'];

/** Members that must never reach a log, including `k` (RFC 7518 §6.4.1). */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([...PRIVATE_HALF, 'k']);

/** The reason to reject a document with a private key: anybody who has read the document can sign with that key. */
export const PRIVATE_HALF_PUBLISHED = 'a key is published with its private half';

export function hasPrivateHalf(jwk: Jwk): boolean {
  return PRIVATE_HALF.some((name) => jwk[name] !== undefined && jwk[name] !== null);
}

export function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the JWK without the members that must stay secret. */
export function publicPart(jwk: Jwk): Jwk {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => !SECRET_MEMBERS.has(name)));
}

/**
 * Checks a sender's configured keys (pins) without importing them. There must be at least one, and each must be an
 * object with a `kid` that no other pin has.
 * @throws ConfigError naming the sender and the `kid`.
 */
export function checkPins(sender: Pick<Sender, 'agentUrl' | 'pins'>): void {
  if (sender.pins !== undefined) pinnedJwks(sender.agentUrl, sender.pins);
}

/**
 * Returns configured keys (pins) by `kid`, public members only.
 * @throws ConfigError if the list is invalid.
 */
export function pinnedJwks(agentUrl: string, pins: readonly unknown[]): ReadonlyMap<string, Jwk> {
  const where = `pins of ${agentUrl}`;
  if (!Array.isArray(pins)) throw new ConfigError(`${where}: not an array. Pass an array of JWKs.`);
  if (pins.length === 0) {
    throw new ConfigError(
      `${where}: empty, so nothing would ever verify. Leave pins out to use the seller's JWKS.`,
    );
  }
  const jwks = new Map<string, Jwk>();
  for (const [index, jwk] of pins.entries()) {
    if (!isJwk(jwk)) throw new ConfigError(`${where}: entry ${index} is not a JWK. Pass JWK objects.`);
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') {
      throw new ConfigError(`${where}: entry ${index} has no kid. Add the kid under which the seller signs.`);
    }
    if (revokedSince(jwk) === Number.NEGATIVE_INFINITY) {
      throw new ConfigError(
        `${where}: revoked_at of the kid ${JSON.stringify(kid)} is not a timestamp. Give it as RFC 3339 has it, e.g. 2026-03-01T12:00:00Z.`,
      );
    }
    if (jwks.has(kid)) {
      throw new ConfigError(
        `${where}: the kid ${JSON.stringify(kid)} occurs twice. Keep one key for each kid.`,
      );
    }
    jwks.set(kid, publicPart(jwk));
  }
  return jwks;
}
