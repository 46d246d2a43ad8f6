import type { SignatureAlgorithm } from '../../crypto/engine.ts';

/** A key of the set that probing needs. */
export interface ProbeKey {
  readonly kid: string;
  readonly alg: SignatureAlgorithm;
  /** Value of `<protocol>_use`. */
  readonly purpose: string;
}

/** Both algorithms, a key for requests (refused in edition 3.0), one for nothing here, and one to be revoked. */
export const PROBE_KEYS: readonly ProbeKey[] = [
  { kid: 'probe-ed25519', alg: 'ed25519', purpose: 'webhook-signing' },
  { kid: 'probe-p256', alg: 'ecdsa-p256-sha256', purpose: 'webhook-signing' },
  { kid: 'probe-request', alg: 'ed25519', purpose: 'request-signing' },
  { kid: 'probe-other', alg: 'ed25519', purpose: 'token-signing' },
  { kid: 'probe-revoked', alg: 'ed25519', purpose: 'webhook-signing' },
];
