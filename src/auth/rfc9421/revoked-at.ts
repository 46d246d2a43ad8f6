import type { Jwk } from '../../crypto/engine.ts';
import { parseInstant } from '../../events/instant.ts';
import type { Candidate } from '../../keys/key-resolver.ts';

/**
 * Since when a JWK says that it is revoked, Unix seconds rounded down: since ever where what it says cannot be read.
 * Undefined where it says nothing.
 */
export function revokedSince({ revoked_at: at }: Jwk): number | undefined {
  if (at === undefined || at === null) return undefined;
  const instant = typeof at === 'string' ? parseInstant(at) : undefined;
  return instant === undefined ? Number.NEGATIVE_INFINITY : Math.floor(instant.ms / 1000);
}

/** Whether a signature that verifies under one verifies under the other: the members of a JWK that an engine reads. */
export function sameMaterial(a: Jwk, b: Jwk): boolean {
  return a === b || materialOf(a) === materialOf(b);
}

/** What a signature verifies under: those members, in canonical form. */
export function materialOf({ kty, crv, x, y }: Jwk): string {
  return JSON.stringify([kty, crv, x, kty === 'EC' ? y : '']);
}

const isRevokedAt = (jwk: Jwk, created: number): boolean =>
  created >= (revokedSince(jwk) ?? Number.POSITIVE_INFINITY);

/** Whether the key, or the same key as another of the sender's publishers pins it, was revoked when this was signed. */
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
