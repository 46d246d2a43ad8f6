import type { Edition, EditionName } from '../shared/editions.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { Transport } from '../events/event.ts';

/** One seller as the receiver's owner configures it. */
export interface Sender {
  /** The seller's `agents[].url`, byte for byte; the keyspace of its events. */
  readonly agentUrl: string;
  /** Where brand.json lies, if not at `https://<host of agentUrl>/.well-known/brand.json`. */
  readonly brandJsonUrl?: string | undefined;
  /** Legacy authentication, deprecated, or that beside signatures for reports; absent: RFC 9421 signatures alone. */
  readonly auth?: SenderAuth | ReportsAuth;
  readonly edition?: EditionName | undefined;
  /** Envelope format known from registration; detected where absent. */
  readonly format?: Transport | undefined;
  /** Only these JWKs verify; the seller's JWKS is not consulted. For publisher pins, tests, air-gapped receivers. */
  readonly pins?: readonly Jwk[];
  /**
   * Domains of publishers whose `https://<domain>/.well-known/adagents.json` may pin this agent's keys. Where one of them
   * lists `signing_keys[]` for `agentUrl` (byte for byte), only the keys that they and `pins` list verify, and the
   * seller's JWKS is not consulted; where none does, the JWKS decides. A file that cannot be had might pin: 503. At
   * most 100.
   */
  readonly publishers?: readonly string[];
  readonly revocation?: SenderRevocation;
  /** The token that this seller's agent transport echoes beside its signature; compared where a delivery carries one. */
  readonly notificationToken?: NotificationToken;
  /** Live nonces for one key id, at most `maxNoncesPerSender`; the receiver's `maxNoncesPerKey` where absent. */
  readonly maxNoncesPerKey?: number;
}

/** Legacy credentials of at least 32 characters; the previous one is accepted during a rotation. */
export type SenderAuth =
  | { readonly hmac: { readonly secret: string; readonly previousSecret?: string } }
  | { readonly bearer: BearerAuth };

/** Signatures for everything, and HMAC under this secret too, for delivery reports alone. */
export interface ReportsAuth {
  readonly reports: { readonly secret: string; readonly previousSecret?: string };
}

/** A token of at least 32 characters in `Authorization`, or as the whole value of a field of its own. */
export interface BearerAuth {
  readonly token: string;
  readonly previousToken?: string;
  /** The field that has the token alone, e.g. `X-A2A-Notification-Token`; then `Authorization` is not looked at. */
  readonly header?: string;
}

/**
 * `push_notification_config.token` as the agent was given it, at least 16 characters. Compared where a delivery has the
 * field `X-A2A-Notification-Token`, or a task envelope the member `token`; one that has neither is only a warning.
 */
export interface NotificationToken {
  readonly token: string;
  /** Accepted too, during a rotation. */
  readonly previousToken?: string;
  /** Another token: `warn` takes the event and raises an alarm, `refuse` answers 401 too, final for the seller. `warn`. */
  readonly onMismatch?: 'warn' | 'refuse';
}

/** Where revoked keys are learned from (docs/keys.md). */
export interface SenderRevocation {
  /** The operator's list, polled. Without it the well-known path at the brand.json's origin is asked whether there is one. */
  readonly url?: string;
  /** `false`: only `url` and `revokedKids` count; nothing is looked for. `true`. */
  readonly discover?: boolean;
  /** Key ids known to be revoked, whatever a list says. */
  readonly revokedKids?: readonly string[];
}

/** How a sender is registered; decides the path before any header is looked at, but for reports. */
export type AuthPolicy =
  /** `reportSecrets`: HMAC under one of them counts too, of delivery reports alone; current first. */
  | { readonly scheme: 'signature'; readonly reportSecrets?: readonly string[] }
  /** Current secret first. */
  | { readonly scheme: 'hmac'; readonly secrets: readonly string[] }
  /** `header` in lower case; absent: `Authorization`. */
  | { readonly scheme: 'bearer'; readonly tokens: readonly string[]; readonly header?: string };

/** Current token first. */
export interface TokenPolicy {
  readonly tokens: readonly string[];
  readonly onMismatch: 'warn' | 'refuse';
}

/** A sender after validation: every name resolved, every default applied. */
export interface SenderEntry {
  readonly agentUrl: string;
  readonly brandJsonUrl?: string;
  readonly auth: AuthPolicy;
  readonly edition: Edition;
  readonly format?: Transport;
  readonly pins?: readonly Jwk[];
  /** Lower case, each once. */
  readonly publishers?: readonly string[];
  readonly revocation?: SenderRevocation;
  readonly notificationToken?: TokenPolicy;
  readonly maxNoncesPerKey: number;
  /** The seller declared where its keys lie, and the origin of its JWKS (verification.md §5.1a); absent: it did not, or the owner says where. */
  readonly declared?: { readonly keyOrigin?: string };
}

/** A name of a sender with the place of its keys, for maps: a seller's keys may be at several (verification.md §5.1a). */
export const placeName = ({ agentUrl, brandJsonUrl, declared }: SenderEntry): string =>
  declared === undefined ? agentUrl : `${agentUrl} ${brandJsonUrl ?? ''}`;
