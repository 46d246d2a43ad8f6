import type { Jwk, SignatureAlgorithm, VerifyKey } from '../../crypto/engine.ts';
import type { Protocol } from '../../protocol.ts';

/** How a JWK names each algorithm (RFC 8037 §3.1, RFC 7518 §3.4); all three members have to agree. */
const JWK_NAMES: Record<
  SignatureAlgorithm,
  { readonly kty: string; readonly crv: string; readonly alg: string }
> = {
  ed25519: { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' },
  'ecdsa-p256-sha256': { kty: 'EC', crv: 'P-256', alg: 'ES256' },
};

/** What check 8 compares a key with. */
export interface KeyPolicy {
  readonly protocol: Protocol;
  /** Accepted values of `<protocol>_use`, from the sender's edition. */
  readonly purposes: readonly string[];
  /** The signature's `alg`. */
  readonly alg: SignatureAlgorithm;
}

/**
 * Check 8: the JWK may verify this signature.
 * @param verifyKey the imported key, or why it could not be imported.
 * @returns the key, or what is wrong with it. Never throws: a JWK may hold anything.
 */
export function usableKey(jwk: Jwk, verifyKey: VerifyKey | string, policy: KeyPolicy): VerifyKey | string {
  if (typeof verifyKey === 'string') return verifyKey;
  const operations = jwk['key_ops'];
  const purpose = jwk[policy.protocol.purposeMember];
  const names = JWK_NAMES[policy.alg];
  const rules: readonly (readonly [boolean, string])[] = [
    [jwk['use'] === 'sig', 'use is not sig'],
    [Array.isArray(operations) && operations.includes('verify'), 'key_ops does not include verify'],
    [
      typeof purpose === 'string' && policy.purposes.includes(purpose),
      `${policy.protocol.purposeMember} is not ${policy.purposes.join(' or ')}`,
    ],
    [
      jwk['kty'] === names.kty &&
        jwk['crv'] === names.crv &&
        jwk['alg'] === names.alg &&
        verifyKey.alg === policy.alg,
      `kty, crv and alg do not agree with ${policy.alg}`,
    ],
  ];
  return rules.find(([holds]) => !holds)?.[1] ?? verifyKey;
}
