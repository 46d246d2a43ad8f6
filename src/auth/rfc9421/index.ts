/**
 * `proto-webhooks/rfc9421`: the signature profile by itself (RFC 9421 as narrowed by contract.md §5.2 to
 * §5.10), for tools that sign, inspect or verify single messages.
 */
export type {
  CryptoEngine,
  Hashes,
  Jwk,
  Sha256Stream,
  SignatureAlgorithm,
  Sodium,
  VerifyKey,
} from '../../crypto/engine.ts';
export type { EngineOptions } from '../../crypto/index.ts';
export { createEngine } from '../../crypto/index.ts';
export type { UseThreadPool as OffMain, PoolState } from '../../crypto/pool.ts';
export type { HeaderFields, HeadersInput } from '../../delivery.ts';
export type { Refusal } from '../../outcome.ts';
export type { Target } from '../contract.ts';
export type { RequestFacts } from './signature-base.ts';
export { signatureBase } from './signature-base.ts';
export type { SignatureInput, SignatureParameters } from './signature-input.ts';
export { parseSignatureInput } from './signature-input.ts';
export { TargetUriError } from './host.ts';
export { canonicalTargetUri } from './signature-base.ts';
export type { SignedMessage, VerifiedSignature, VerifySignatureOptions } from './verify-signature.ts';
export { verifySignature } from './verify-signature.ts';
