// Reads `revoked_at` of a JWK, and compares keys by their material (verification.md §2.9).
// Called for each candidate key, and by the folder `keys` for pins and published keys.

import type { Jwk } from '../../crypto/engine.ts';
import { parseInstant } from '../../events/instant.ts';
import type { Candidate } from '../../keys/key-resolver.ts';

/**
 * Returns the time (Unix seconds, rounded down) from which a JWK is revoked by its own `revoked_at`. A value that
 * cannot be parsed revokes the JWK for all time. Undefined without `revoked_at`.
 */
export function revokedSince({ revoked_at: at }: Jwk): number | undefined {
  if (at === undefined || at === null) return undefined;
  const instant = typeof at === 'string' ? parseInstant(at) : undefined;
  return instant === undefined ? Number.NEGATIVE_INFINITY : Math.floor(instant.ms / 1000);
}

/** True if two JWKs verify the same signatures, because the members that an engine reads are equal. */
export function sameMaterial(a: Jwk, b: Jwk): boolean {
  return a === b || materialOf(a) === materialOf(b);
}

/** Returns the members of a JWK on which verification depends, in canonical form. */
export function materialOf({ kty, crv, x, y }: Jwk): string {
  return JSON.stringify([kty, crv, x, kty === 'EC' ? y : '']);
}

const isRevokedAt = (jwk: Jwk, created: number): boolean =>
  created >= (revokedSince(jwk) ?? Number.POSITIVE_INFINITY);

/**
 * True if the key was revoked when the signature was made. `revoked_at` of any JWK or pin of the sender with the same
 * key counts.
 */
export function isRevokedKey(
  { sender, key }: Candidate,
  candidates: readonly Candidate[],
  created: number,
): boolean {
  for (const other of candidates) {
    const isRevoked =
      isRevokedAt(other.key.jwk, created) || other.pins?.some((pin) => isRevokedAt(pin, created)) === true;
    if (isRevoked && other.sender.agentUrl === sender.agentUrl && sameMaterial(other.key.jwk, key.jwk))
      return true;
  }
  return false;
}
