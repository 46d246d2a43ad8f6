// Exports names of `src/auth` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { authenticateBearer } from './bearer.ts';
export type { AuthContext, AuthRequest, AuthResult, SetUpWatch } from './auth-contract.ts';
export { bearerToken } from './credentials.ts';
export { authenticateHmac } from './hmac.ts';
export { modeMismatch, schemeOf } from './mode.ts';
export { type Trial, tryCandidates } from './rfc9421/candidates.ts';
export {
  type CheckedSignature,
  checkSignatureFields,
  checkSignatureHeaders,
  MAX_VALIDITY_S,
  readSignatureFields,
  type SignatureFields,
  SKEW_S,
} from './rfc9421/checks.ts';
export { digestMatches, matchingHash, readContentDigest } from './rfc9421/content-digest.ts';
export { canonicalAuthority, compareHost } from './rfc9421/host.ts';
export { usableKey } from './rfc9421/key-policy.ts';
export { isRevokedKey } from './rfc9421/revoked-at.ts';
export { REQUIRED_COMPONENTS } from './rfc9421/signature-base.ts';
export {
  type Member,
  parseSignatureInputFast,
  parseSignatureInputFull,
  readDictionary,
} from './rfc9421/signature-input.ts';
export { authenticateSignature } from './rfc9421/verify.ts';
