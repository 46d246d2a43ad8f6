// Defines a sender of the option `senders`, and the validated entry that is made of it. Also has the function that
// names an entry in maps. Authentication, keys and stages read the entry.
import type { Edition, EditionName } from '../shared/editions.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { Transport } from '../events/event.ts';

/** A seller that may call the receiver (option `senders`): its agent URL, and how its deliveries are authenticated. */
export interface Sender {
  /** The seller's `agents[].url`, byte for byte. The seller's events are stored under this URL. */
  readonly agentUrl: string;
  /** The URL of brand.json. Default: `https://<host of agentUrl>/.well-known/brand.json`. */
  readonly brandJsonUrl?: string | undefined;
  /**
   * Legacy authentication, which is deprecated, alone or for reports in addition to signatures. Absent: RFC 9421
   * signatures only.
   */
  readonly auth?: SenderAuth | ReportsAuth;
  /** The edition of the protocol that the seller speaks. Default: the receiver's `edition`. */
  readonly edition?: EditionName | undefined;
  /** The envelope format for which the seller is registered. Absent: the format is detected. */
  readonly format?: Transport | undefined;
  /**
   * The only JWKs that may verify; the seller's JWKS is not fetched. Use them for publisher pins, tests and
   * receivers without internet.
   */
  readonly pins?: readonly Jwk[];
  /**
   * Domains of publishers whose `https://<domain>/.well-known/adagents.json` may pin this agent's keys, at most
   * 100.
   *
   * If one of them lists `signing_keys[]` for `agentUrl` (byte for byte), only those keys and `pins` verify, and the
   * seller's JWKS is not fetched. If none does, the JWKS decides. A file that cannot be fetched might pin keys, so the
   * answer is 503.
   */
  readonly publishers?: readonly string[];
  /** The places to look for the seller's revoked keys. Default: a list is searched, as with `discover: true`. */
  readonly revocation?: SenderRevocation;
  /**
   * The token that this seller's agent transport echoes in addition to its signature. It is compared if a delivery
   * carries one.
   */
  readonly notificationToken?: NotificationToken;
  /**
   * The largest number of unexpired nonces per key id, at most the receiver's `maxNoncesPerSender`. Default: the
   * receiver's `maxNoncesPerKey`.
   */
  readonly maxNoncesPerKey?: number;
}

/**
 * The secret of a seller that authenticates by HMAC or with a bearer token instead of RFC 9421: the member `auth` of
 * a `Sender`. Both schemes are deprecated. A secret has at least 32 characters. Set the previous secret too while you
 * rotate; it is accepted until you remove it.
 */
export type SenderAuth =
  | { readonly hmac: { readonly secret: string; readonly previousSecret?: string } }
  | { readonly bearer: BearerAuth };

/**
 * The HMAC secret of a seller that signs by RFC 9421, except for its delivery reports: the member `auth` of a
 * `Sender`. It is accepted for reports only, and a signed report is accepted too. Every other delivery needs a
 * signature.
 */
export interface ReportsAuth {
  readonly reports: { readonly secret: string; readonly previousSecret?: string };
}

/**
 * The bearer token of a seller, at least 32 characters: `auth: { bearer }` of a `Sender`. The seller sends it in
 * `Authorization`, or as the whole value of another header field.
 */
export interface BearerAuth {
  readonly token: string;
  readonly previousToken?: string;
  /**
   * The header field that carries the token alone, e.g. `X-A2A-Notification-Token`. `Authorization` is then
   * ignored.
   */
  readonly header?: string;
}

/**
 * The token that you gave a seller as `push_notification_config.token`, at least 16 characters: the member
 * `notificationToken` of a `Sender`. A delivery's token is compared with it, in the field `X-A2A-Notification-Token`
 * or the body's member `token`. A delivery without a token only gets a warning.
 */
export interface NotificationToken {
  readonly token: string;
  /** The former token, which is accepted too during a rotation. */
  readonly previousToken?: string;
  /**
   * The reaction if a delivery carries a token other than `token` and `previousToken`. `warn` accepts the event and
   * raises an alarm. `refuse` answers 401, which is final for the seller. Default: `warn`.
   */
  readonly onMismatch?: 'warn' | 'refuse';
}

/**
 * The places where the receiver looks for revoked keys of a seller: the member `revocation` of a `Sender`. They are
 * a list at a URL, and key ids that you name. The page docs/keys.md describes them.
 */
export interface SenderRevocation {
  /**
   * The URL of the revocation list that the seller's operator publishes; it is polled. Default: the well-known path at
   * the origin of brand.json is tried.
   */
  readonly url?: string;
  /** If false, only `url` and `revokedKids` count, and no list is searched. Default: true. */
  readonly discover?: boolean;
  /** Key ids that are revoked, whatever a list says. */
  readonly revokedKids?: readonly string[];
}

/**
 * The registered authentication of a sender. The headers of a delivery never select another scheme. Delivery reports
 * alone may have either of two schemes, if `reportSecrets` is set.
 */
export type AuthPolicy =
  /**
   * The sender signs. For delivery reports alone, an HMAC under one of `reportSecrets` is accepted too; the current
   * secret comes first.
   */
  | { readonly scheme: 'signature'; readonly reportSecrets?: readonly string[] }
  /** The sender authenticates by HMAC; the current secret comes first. */
  | { readonly scheme: 'hmac'; readonly secrets: readonly string[] }
  /**
   * The sender authenticates by a bearer token; the current token comes first. `header` is in lower case; absent:
   * `Authorization`.
   */
  | { readonly scheme: 'bearer'; readonly tokens: readonly string[]; readonly header?: string };

/** The option `notificationToken` after validation; the current token comes first. */
export interface TokenPolicy {
  readonly tokens: readonly string[];
  readonly onMismatch: 'warn' | 'refuse';
}

/** A sender after validation: every option checked, every default applied. */
export interface SenderEntry {
  readonly agentUrl: string;
  readonly brandJsonUrl?: string;
  readonly auth: AuthPolicy;
  readonly edition: Edition;
  readonly format?: Transport;
  readonly pins?: readonly Jwk[];
  /** The hosts of the publishers in lower case, each once. */
  readonly publishers?: readonly string[];
  readonly revocation?: SenderRevocation;
  readonly notificationToken?: TokenPolicy;
  readonly maxNoncesPerKey: number;
  /**
   * Present if the seller itself has declared the URL of its brand.json or the origin of its JWKS (verification.md
   * §5.1a). Absent if it has not, or if the owner has configured the URL.
   */
  readonly declared?: { readonly keyOrigin?: string };
}

/**
 * Returns the name of a sender for maps. The name includes the URL of brand.json that the seller has declared, because
 * a seller's keys may be at several URLs (verification.md §5.1a).
 */
export const placeName = ({ agentUrl, brandJsonUrl, declared }: SenderEntry): string =>
  declared === undefined ? agentUrl : `${agentUrl} ${brandJsonUrl ?? ''}`;
