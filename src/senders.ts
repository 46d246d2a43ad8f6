import type { Edition, EditionName } from './edition.ts';
import type { Jwk } from './crypto/engine.ts';
import type { Transport } from './events/event.ts';

/** One seller as the receiver's owner configures it. */
export interface Sender {
  /** The seller's `agents[].url`, byte for byte; the keyspace of its events. */
  readonly agentUrl: string;
  /** Where brand.json lies, if not at `https://<host of agentUrl>/.well-known/brand.json`. */
  readonly brandJsonUrl?: string;
  /** Legacy authentication, deprecated; absent: RFC 9421 signatures. */
  readonly auth?: SenderAuth;
  readonly edition?: EditionName;
  /** Envelope format known from registration; detected where absent. */
  readonly format?: Transport;
  /** Only these JWKs verify; the seller's JWKS is not consulted. For publisher pins, tests, air-gapped receivers. */
  readonly pins?: readonly Jwk[];
  readonly revocation?: SenderRevocation;
  /** Live nonces for one key id; the receiver's `maxNoncesPerKey` where absent. */
  readonly maxNoncesPerKey?: number;
}

/** Legacy credentials of at least 32 characters; the previous one is accepted during a rotation. */
export type SenderAuth =
  | { readonly hmac: { readonly secret: string; readonly previousSecret?: string } }
  | { readonly bearer: { readonly token: string; readonly previousToken?: string } };

/** A published list (polled), key ids known to be revoked, or both. */
export interface SenderRevocation {
  readonly url?: string;
  readonly revokedKids?: readonly string[];
}

/** How a sender is registered; decides the path before any header is looked at. */
export type AuthPolicy =
  | { readonly scheme: 'signature' }
  /** Current secret first. */
  | { readonly scheme: 'hmac'; readonly secrets: readonly string[] }
  | { readonly scheme: 'bearer'; readonly tokens: readonly string[] };

/** A sender after validation: every name resolved, every default applied. */
export interface SenderEntry {
  readonly agentUrl: string;
  readonly brandJsonUrl?: string;
  readonly auth: AuthPolicy;
  readonly edition: Edition;
  readonly format?: Transport;
  readonly pins?: readonly Jwk[];
  readonly revocation?: SenderRevocation;
  readonly maxNoncesPerKey: number;
}
