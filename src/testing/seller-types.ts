// Defines the fake seller, its options and the result of its proof of control: types alone. fake-seller.ts and
// seller-delivery.ts implement them.
import type { Jwk, KeyPair, PayloadInput, SignDeliveryOptions, SignedDelivery } from '../sender/sign.ts';
import type { Sender, SenderAuth } from '../config/sender-entry.ts';
import type { Members, SamplePayloads } from './payloads.ts';
import type { SellerFault } from './seller-documents.ts';
import type { RotateOptions, SellerKeyName, RevokeOptions } from './seller-keys.ts';
import type { Attempt, DeliveryResult, RetryPolicy } from './seller-post.ts';

/**
 * The result of `seller.challenge`, which checks that a receiver controls its webhook URL. `attempt` has the receiver's
 * answer.
 */
export interface ChallengeResult {
  /**
   * True if the receiver proved control: a 2xx answer with exactly the body `{"challenge": "<the same>"}`. A real
   * seller then activates the subscription.
   */
  readonly verified: boolean;
  readonly attempt: Attempt;
}

/**
 * Options of `createFakeSeller`: the receiver's URL, the authentication, the retries, and the clock. All are
 * optional; `url` is given here or to each `deliver`.
 */
export interface FakeSellerOptions {
  /** The buyer's webhook URL, the same as the receiver's `publicUrl`. */
  readonly url?: string;
  /** The address to connect to, if it differs from `url`, e.g. `http://127.0.0.1:3000/webhooks`. */
  readonly to?: string;
  /** The protocol name in wire identifiers. Default: `proto`. */
  readonly protocol?: string | undefined;
  /** A legacy authentication scheme (HMAC or bearer token). Default: deliveries are signed. */
  readonly auth?: SenderAuth;
  /** The number of attempts per event and the waits between them. Default: 6 attempts within about 15 s. */
  readonly retry?: Partial<RetryPolicy>;
  /** The port that serves brand.json and JWKS. Default: any free port. */
  readonly port?: number;
  /** Returns the current time, Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Options of one `seller.deliver`, e.g. the key or a mistake to make. They override the fake seller's own options. */
export interface DeliverOptions {
  /**
   * The webhook URL, in place of the fake seller's own. `to` and `retry` likewise replace the fake seller's options.
   */
  readonly url?: string;
  readonly to?: string;
  /**
   * The signing key: the name of one of the seller's keys, or a private JWK to sign as somebody else. Default:
   * `ed25519`.
   */
  readonly key?: SellerKeyName | Jwk;
  /** The authentication scheme. Default: that of the fake seller. */
  readonly auth?: SenderAuth | 'signature';
  /**
   * Applies a mistake, a name in `MISTAKES`, to every attempt. With a legacy `auth` only mistakes in the body are
   * allowed.
   */
  readonly mistake?: string;
  /** Additional options for `signDelivery`, for errors that `mistake` does not cover. */
  readonly sign?: Partial<SignDeliveryOptions>;
  readonly retry?: Partial<RetryPolicy>;
  /** Called with every attempt when it has ended. */
  readonly onAttempt?: (attempt: Attempt) => void;
}

/**
 * A seller on 127.0.0.1 for tests, made by `createFakeSeller`. It publishes keys, signs and delivers webhooks, and
 * can make the mistakes of `MISTAKES`.
 */
export interface FakeSeller extends AsyncDisposable {
  /** The seller's agent URL, `http://127.0.0.1:<port>/mcp`. The receiver needs `allowLoopback: true`. */
  readonly agentUrl: string;
  readonly brandJsonUrl: string;
  readonly jwksUrl: string;
  /** The entry of this seller for the receiver's option `senders`. */
  readonly sender: Sender;
  /** The key pairs that are published at present. */
  readonly keys: Readonly<Record<SellerKeyName, KeyPair>>;
  /** Builds valid bodies. Each call makes a new event. */
  readonly payloads: SamplePayloads;
  /** The URL of the revocation list that `revoke` publishes. Before the first call it answers 404. */
  readonly revocationsUrl: string;
  /**
   * The published documents by path: JSON, bytes, or a function that returns either at each fetch. Change an entry,
   * or delete it to answer 404.
   */
  readonly documents: Map<string, unknown>;
  /**
   * Faults by path, or under `*` for every path. Each applies until it is deleted, e.g.
   * `seller.faults.set('/.well-known/jwks.json', 'down')`, `.set('*', 'unavailable')`,
   * `.set(path, { redirect: url })`.
   */
  readonly faults: Map<string, SellerFault>;
  /** Returns the number of requests for a path, e.g. `/.well-known/jwks.json`, or for all paths. */
  readonly fetches: (path?: string) => number;
  /** Replaces a published key with a new one, and signs with the new one from now on. */
  readonly rotate: (name: SellerKeyName, options?: RotateOptions) => Promise<KeyPair>;
  /**
   * Publishes a revocation list of exactly these key ids, with a fresh `updated` at every fetch. To make refreshes
   * fail use `faults`; to withdraw the list delete its entry in `documents`.
   */
  readonly revoke: (kids: readonly string[], options?: RevokeOptions) => void;
  /** Signs a delivery without sending it. */
  readonly sign: (payload: PayloadInput, options?: DeliverOptions) => Promise<SignedDelivery>;
  /** Posts a delivery once, unchanged. Sending the same delivery again is a replay. */
  readonly send: (delivery: SignedDelivery, options?: Pick<DeliverOptions, 'to'>) => Promise<Attempt>;
  /**
   * Delivers an event as sellers do. Every attempt has the same bytes and a fresh nonce. It retries after 429, 5xx,
   * time-outs, broken connections, and a 401 that asks for `Bearer`. Any other answer is final.
   */
  readonly deliver: (payload: PayloadInput, options?: DeliverOptions) => Promise<DeliveryResult>;
  /**
   * Posts a signed proof of control once, as a seller does before it activates a subscription. The member
   * `delivery_auth` of the body describes the fake seller's `auth`. `changes` replace members of the body.
   */
  readonly challenge: (changes?: Members, options?: DeliverOptions) => Promise<ChallengeResult>;
  /** Stops serving and delivering. Deliveries that are under way end with the attempts made so far. */
  readonly close: () => Promise<void>;
}
