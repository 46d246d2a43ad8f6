import type { Jwk } from '../crypto/engine.ts';

/** Members of the private half of a key pair (RFC 7518 §6.2.2, §6.3.2). */
const PRIVATE_HALF: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'];

/** `k` too (RFC 7518 §6.4.1): none of them gets near a log. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([...PRIVATE_HALF, 'k']);

/** Whoever read it can sign with it, so nothing in such a document may be believed. */
export const PRIVATE_HALF_PUBLISHED = 'a key is published with its private half';

export function hasPrivateHalf(jwk: Jwk): boolean {
  return PRIVATE_HALF.some((name) => jwk[name] !== undefined && jwk[name] !== null);
}

export function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `jwk` without the members that must stay secret. */
export function publicPart(jwk: Jwk): Jwk {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => !SECRET_MEMBERS.has(name)));
}
