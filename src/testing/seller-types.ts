import type { Jwk, KeyPair, PayloadInput, SignDeliveryOptions, SignedDelivery } from '../sender/sign.ts';
import type { Sender, SenderAuth } from '../config/sender-entry.ts';
import type { Members, SamplePayloads } from './payloads.ts';
import type { SellerFault } from './seller-documents.ts';
import type { RotateOptions, SellerKeyName, RevokeOptions } from './seller-keys.ts';
import type { Attempt, DeliveryResult, RetryPolicy } from './seller-post.ts';

/** A proof of control that was posted, and whether the buyer gave it. */
export interface ChallengeResult {
  /** The answer was 2xx and its body exactly `{"challenge": "<the same>"}`: a seller activates the subscription. */
  readonly verified: boolean;
  readonly attempt: Attempt;
}

/** `createFakeSeller`'s options. All have defaults; give `url` here or to each `deliver`. */
export interface FakeSellerOptions {
  /** The buyer's webhook URL, as its `publicUrl` says. */
  readonly url?: string;
  /** Where to connect, if not where `url` says, e.g. `http://127.0.0.1:3000/webhooks`. */
  readonly to?: string;
  /** Name in wire identifiers. `proto`. */
  readonly protocol?: string | undefined;
  /** Legacy authentication instead of signatures. */
  readonly auth?: SenderAuth;
  readonly retry?: Partial<RetryPolicy>;
  /** Port for brand.json and JWKS. Any free one. */
  readonly port?: number;
  /** Unix ms. `Date.now`. */
  readonly now?: () => number;
}

/** What one delivery does otherwise. */
export interface DeliverOptions {
  readonly url?: string;
  readonly to?: string;
  /** `ed25519`. A private JWK signs as somebody else. */
  readonly key?: SellerKeyName | Jwk;
  /** Another scheme than the seller's. */
  readonly auth?: SenderAuth | 'signature';
  /** Spoils every attempt: a name in `MISTAKES`. Where `auth` is a legacy scheme, one that is about the body. */
  readonly mistake?: string;
  /** Handed to `signDelivery`, for what `mistake` has no name for. */
  readonly sign?: Partial<SignDeliveryOptions>;
  readonly retry?: Partial<RetryPolicy>;
  /** Told of every attempt as it ends. */
  readonly onAttempt?: (attempt: Attempt) => void;
}

/** A seller on loopback, made by `createFakeSeller`. */
export interface FakeSeller extends AsyncDisposable {
  /** `http://127.0.0.1:<port>/mcp`; the receiver needs `allowLoopback: true`. */
  readonly agentUrl: string;
  readonly brandJsonUrl: string;
  readonly jwksUrl: string;
  /** For the receiver's `senders`. */
  readonly sender: Sender;
  /** What is published now. */
  readonly keys: Readonly<Record<SellerKeyName, KeyPair>>;
  /** Builders of valid bodies; two calls are two events. */
  readonly payloads: SamplePayloads;
  /** Where `revoke` publishes; 404 before that. */
  readonly revocationsUrl: string;
  /**
   * What it publishes, by path: JSON, bytes, or a function that gives either at each fetch. Change it, or delete an entry
   * for a 404.
   */
  readonly documents: Map<string, unknown>;
  /**
   * What goes wrong instead, by path or under `*` for every path, until it is deleted:
   * `seller.faults.set('/.well-known/jwks.json', 'down')`, `.set('*', 'unavailable')`, `.set(path, { redirect: url })`.
   */
  readonly faults: Map<string, SellerFault>;
  /** How often a path (`/.well-known/jwks.json`) was asked for, or all of them. */
  readonly fetches: (path?: string) => number;
  /** Replaces a published key by a new one, and signs with it from now on. */
  readonly rotate: (name: SellerKeyName, options?: RotateOptions) => Promise<KeyPair>;
  /**
   * Publishes a revocation list that names these key ids and no others, from now on, with a fresh `updated` at every
   * fetch. Fails to be refreshed where `faults` says so; is withdrawn where its entry of `documents` is deleted.
   */
  readonly revoke: (kids: readonly string[], options?: RevokeOptions) => void;
  /** Signs a delivery and does not send it. */
  readonly sign: (payload: PayloadInput, options?: DeliverOptions) => Promise<SignedDelivery>;
  /** Posts a delivery once, as it is. One that was sent before is a replay. */
  readonly send: (delivery: SignedDelivery, options?: Pick<DeliverOptions, 'to'>) => Promise<Attempt>;
  /**
   * Delivers an event as sellers do: the same bytes on every attempt, each with a fresh nonce, again after 429, 5xx,
   * time-outs and broken connections, and no more after any other answer.
   */
  readonly deliver: (payload: PayloadInput, options?: DeliverOptions) => Promise<DeliveryResult>;
  /**
   * Posts a proof of control, signed, once, as a seller does before it activates a subscription: `delivery_auth` is that
   * of `auth`. `changes` replace members of its body.
   */
  readonly challenge: (changes?: Members, options?: DeliverOptions) => Promise<ChallengeResult>;
  /** Stops serving and delivering; deliveries under way end with the attempts made so far. */
  readonly close: () => Promise<void>;
}
