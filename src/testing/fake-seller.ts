import { ConfigError } from '../errors.ts';
import { protocolFor } from '../protocol.ts';
import { payloadBytes } from '../sender/delivery.ts';
import type { Jwk, KeyPair, PayloadInput, SignDeliveryOptions, SignedDelivery } from '../sender/sign.ts';
import type { Sender, SenderAuth } from '../senders.ts';
import type { Mistake } from './mistakes.ts';
import { samplePayloads, type SamplePayloads } from './payloads.ts';
import { makeDelivery } from './seller-delivery.ts';
import { serveDocuments } from './seller-documents.ts';
import { sellerKeys, type SellerKeyName, type SellerKeys } from './seller-keys.ts';
import { post } from './seller-post.ts';
import {
  DEFAULT_RETRY,
  untilFinal,
  type Attempt,
  type DeliveryResult,
  type RetryPolicy,
} from './seller-retry.ts';

/** `createFakeSeller`'s options. All have defaults; give `url` here or to each `deliver`. */
export interface FakeSellerOptions {
  /** The buyer's webhook URL, as its `publicUrl` says. */
  readonly url?: string;
  /** Where to connect, if not where `url` says, e.g. `http://127.0.0.1:3000/webhooks`. */
  readonly to?: string;
  /** Name in wire identifiers. `proto`. */
  readonly protocol?: string;
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
  /** Spoils every attempt. */
  readonly mistake?: Mistake;
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
  /** What it publishes, JSON by path: change it, or delete an entry for a 404. */
  readonly documents: Map<string, unknown>;
  /** How often a path (`/.well-known/jwks.json`) was asked for, or all of them. */
  readonly fetches: (path?: string) => number;
  /** Replaces a published key by a new one under a new `kid`, and signs with it from now on. */
  readonly rotate: (name: SellerKeyName) => Promise<KeyPair>;
  /** Signs a delivery and does not send it. */
  readonly sign: (payload: PayloadInput, options?: DeliverOptions) => Promise<SignedDelivery>;
  /** Posts a delivery once, as it is. One that was sent before is a replay. */
  readonly send: (delivery: SignedDelivery, options?: Pick<DeliverOptions, 'to'>) => Promise<Attempt>;
  /**
   * Delivers an event as sellers do: the same bytes on every attempt, each with a fresh nonce, again after 429, 5xx,
   * time-outs and broken connections, and no more after any other answer.
   */
  readonly deliver: (payload: PayloadInput, options?: DeliverOptions) => Promise<DeliveryResult>;
  /** Stops serving and delivering; deliveries under way end with the attempts made so far. */
  readonly close: () => Promise<void>;
}

const BRAND_JSON = '/.well-known/brand.json';
const JWKS = '/.well-known/jwks.json';

/** Signing and sending, with the seller's defaults. */
function deliveries(options: FakeSellerOptions, keys: SellerKeys['keys'], signal: AbortSignal) {
  const { protocol = 'proto', now = Date.now } = options;
  const policyOf = (more?: Partial<RetryPolicy>): RetryPolicy => ({
    ...DEFAULT_RETRY,
    ...options.retry,
    ...more,
  });

  const sign: FakeSeller['sign'] = async (payload, more = {}) => {
    const url = more.url ?? options.url;
    if (url === undefined) throw new ConfigError('url: give the webhook URL to createFakeSeller or deliver.');
    const auth = more.auth === 'signature' ? undefined : (more.auth ?? options.auth);
    const { mistake, sign, key: name = 'ed25519' } = more;
    const key = typeof name === 'string' ? keys[name].privateJwk : name;
    return makeDelivery({ url, payload, key, protocol, now, auth, mistake, sign });
  };

  const sendOnce = async (
    delivery: SignedDelivery,
    attempt: number,
    more: DeliverOptions,
  ): Promise<Attempt> => {
    const to = more.to ?? options.to;
    const { timeoutMs } = policyOf(more.retry);
    const result = await post(delivery, { timeoutMs, signal, ...(to !== undefined && { to }) });
    return { attempt, delivery, ...result };
  };

  const deliver: FakeSeller['deliver'] = async (payload, more = {}) => {
    // Serialised once: every attempt carries the same bytes.
    const bytes = payloadBytes(payload);
    const attempt = async (number: number): Promise<Attempt> => {
      const made = await sendOnce(await sign(bytes, more), number, more);
      more.onAttempt?.(made);
      return made;
    };
    return untilFinal(attempt, policyOf(more.retry), signal);
  };

  const send: FakeSeller['send'] = (delivery, more = {}) => sendOnce(delivery, 1, more);
  return { sign, send, deliver };
}

/**
 * Starts a seller on 127.0.0.1 with brand.json, a JWKS and keys of both algorithms. Give its `sender` to a receiver
 * with `allowLoopback: true`, and test your own handlers with real deliveries. `url` is the receiver's `publicUrl`:
 *
 *     const seller = await createFakeSeller({ url: 'http://127.0.0.1:3000/webhooks/proto' });
 *     const receiver = createReceiver({ senders: [seller.sender], allowLoopback: true, publicUrl, store, handlers });
 *     const { last } = await seller.deliver(seller.payloads.tool('completed'));
 *     await seller.close();
 *
 * @throws ConfigError for a wrong `protocol`.
 */
export async function createFakeSeller(options: FakeSellerOptions = {}): Promise<FakeSeller> {
  protocolFor(options.protocol);
  const server = await serveDocuments(options.port ?? 0);
  const { origin, documents, fetches } = server;
  const agentUrl = `${origin}/mcp`;
  const brandJsonUrl = origin + BRAND_JSON;
  const jwksUrl = origin + JWKS;
  documents.set(BRAND_JSON, {
    name: 'Fake seller',
    agents: [{ type: 'sales', url: agentUrl, jwks_uri: jwksUrl }],
  });
  const { keys, rotate } = await sellerKeys(options.protocol, (keySet) => documents.set(JWKS, keySet));
  const closing = new AbortController();
  const close = async (): Promise<void> => {
    closing.abort();
    await server.close();
  };
  return {
    agentUrl,
    brandJsonUrl,
    jwksUrl,
    sender: { agentUrl, brandJsonUrl, ...(options.auth && { auth: options.auth }) },
    keys,
    payloads: samplePayloads(options.now ? { now: options.now } : {}),
    documents,
    fetches,
    rotate,
    ...deliveries(options, keys, closing.signal),
    close,
    [Symbol.asyncDispose]: close,
  };
}
