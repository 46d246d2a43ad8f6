import { ed25519KeyFlaw } from './ed25519-precheck.ts';
import type { Jwk, SignatureAlgorithm } from './engine.ts';
import { p256KeyFlaw } from './p256-precheck.ts';

/** The public part of a JWK and nothing else, as engines import it: `use`, `key_ops`, `d` would make them differ. */
export interface PublicJwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
}

/** A public key that passed every check that does not need an engine. */
export interface PublicKey {
  readonly alg: SignatureAlgorithm;
  /** Ed25519: the 32 bytes of RFC 8032 §5.1.2. P-256: `04 ‖ x ‖ y`. */
  readonly point: Uint8Array;
  readonly jwk: PublicJwk;
}

interface KeyKind {
  readonly kty: string;
  readonly crv: string;
  readonly coordinates: readonly ('x' | 'y')[];
  readonly prefix: readonly number[];
  readonly flaw: (point: Uint8Array) => string | undefined;
}

const KINDS: Record<SignatureAlgorithm, KeyKind> = {
  // RFC 8037 §2
  ed25519: { kty: 'OKP', crv: 'Ed25519', coordinates: ['x'], prefix: [], flaw: ed25519KeyFlaw },
  // RFC 7518 §6.2.1
  'ecdsa-p256-sha256': { kty: 'EC', crv: 'P-256', coordinates: ['x', 'y'], prefix: [4], flaw: p256KeyFlaw },
};

const ALGORITHMS: readonly SignatureAlgorithm[] = ['ed25519', 'ecdsa-p256-sha256'];

/** Unpadded base64url of exactly 32 bytes (RFC 7515 §2): the last of 43 characters has its two lowest bits clear. */
const BASE64URL_32 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

function decode32(text: string): number[] {
  return Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
}

/**
 * Reads the public part of a JWK. Private members and members that state a purpose (check 8) are not looked at.
 * @returns what is wrong, in fixed words, where it is no Ed25519 or P-256 public key fit for use. Never throws.
 */
export function readPublicKey(jwk: Jwk): PublicKey | string {
  if (typeof jwk !== 'object' || jwk === null) return 'the JWK is not an object';
  const alg = ALGORITHMS.find((name) => KINDS[name].kty === jwk['kty'] && KINDS[name].crv === jwk['crv']);
  if (alg === undefined) return 'kty and crv are neither OKP and Ed25519 nor EC and P-256';
  const kind = KINDS[alg];
  const found: { x?: string; y?: string } = {};
  const bytes = [...kind.prefix];
  for (const name of kind.coordinates) {
    const text = jwk[name];
    if (typeof text !== 'string' || !BASE64URL_32.test(text)) {
      return `${name} is not the unpadded base64url of 32 bytes`;
    }
    found[name] = text;
    bytes.push(...decode32(text));
  }
  const point = Uint8Array.from(bytes);
  const { x = '', ...rest } = found;
  return kind.flaw(point) ?? { alg, point, jwk: { kty: kind.kty, crv: kind.crv, x, ...rest } };
}
