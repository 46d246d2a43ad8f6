// Signs webhooks as a seller does, by RFC 9421, HMAC or bearer token: the package entry `proto-webhooks/sender`.
// Called by sellers, by the fake sellers of `proto-webhooks/testing` and by the commands `keys` and `probe`.

import { canonicalTargetUri, REQUIRED_COMPONENTS, signatureBase } from '../auth/rfc9421/signature-base.ts';
import { encodeBase64, encodeBase64Url, hex } from '../codec/encoding.ts';
import { requireSecret } from '../config/auth.ts';
import { onlyKnown } from '../config/validate.ts';
import type { Jwk } from '../crypto/engine.ts';
import { createHashes } from '../crypto/hashes.ts';
import { headerFields } from '../shared/delivery.ts';
import { ConfigError } from '../shared/errors.ts';
import { protocolFor } from '../shared/wire-names.ts';
import {
  bytesToSign,
  mergeHeaders,
  type SignedDelivery,
  type SigningInput,
  payloadBytes,
  type PayloadInput,
} from './signed-delivery.ts';
import { algorithmOf, signBytes } from './keys.ts';

interface LegacyDelivery {
  /** The buyer's webhook URL. */
  readonly url: string;
  readonly body: PayloadInput;
  /** Additional header fields. A field with the name of a default one replaces it. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Options of `signHmac`: the URL, the body, the shared secret, the clock, and the protocol name in header names. */
export interface HmacDeliveryOptions extends LegacyDelivery, SigningInput {
  /** The shared secret of `push_notification_config.authentication.credentials`, at least 32 characters. */
  readonly secret: string;
  /** The protocol name in header names. Default: `proto`. */
  readonly protocol?: string | undefined;
  /** Returns the current time, Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Options of `bearerDelivery`: the URL, the body, the token, and the header field that carries it. */
export interface BearerDeliveryOptions extends LegacyDelivery {
  /** The token of `push_notification_config.authentication.credentials`, at least 32 characters. */
  readonly token: string;
  /**
   * A header field that carries the token alone, e.g. `X-A2A-Notification-Token`. Default:
   * `Authorization: Bearer …`.
   */
  readonly header?: string;
}

const DELIVERY_NAMES = { url: true, body: true, headers: true } as const;
const HMAC_NAMES: Readonly<Record<keyof HmacDeliveryOptions, true>> = {
  ...DELIVERY_NAMES,
  allowMalformed: true,
  secret: true,
  protocol: true,
  now: true,
};
const BEARER_NAMES: Readonly<Record<keyof BearerDeliveryOptions, true>> = {
  ...DELIVERY_NAMES,
  token: true,
  header: true,
};

/**
 * Signs a webhook with the deprecated HMAC-SHA256 scheme, over `<timestamp>.<raw body>`, as a seller does. Use
 * `signDelivery` unless the buyer registered a secret.
 * @throws ConfigError for a secret under 32 characters, a body that repeats a member, or an unknown option.
 * @example
 * ```ts
 * import { signHmac } from 'proto-webhooks/sender';
 *
 * const secret = process.env['WEBHOOK_SECRET'] ?? '';
 * const body = { idempotency_key: crypto.randomUUID(), task_id: 'task-1', status: 'working' };
 * const delivery = signHmac({ url: 'https://buyer.example/hooks', body, secret });
 * await fetch(delivery.url, delivery);
 * ```
 */
export function signHmac(options: HmacDeliveryOptions): SignedDelivery {
  onlyKnown('signHmac', options, HMAC_NAMES);
  const { hmacSignatureHeader, hmacTimestampHeader } = protocolFor(options.protocol);
  const { now = Date.now } = options;
  requireSecret('secret', options.secret);
  const body = bytesToSign(options);
  const timestamp = String(Math.floor(now() / 1000));
  const encoder = new TextEncoder();
  const mac = createHashes().hmacSha256(
    encoder.encode(options.secret),
    encoder.encode(`${timestamp}.`),
    body,
  );
  const headers = {
    'Content-Type': 'application/json',
    [hmacTimestampHeader]: timestamp,
    [hmacSignatureHeader]: `sha256=${hex(mac)}`,
  };
  return { method: 'POST', url: options.url, headers: mergeHeaders(headers, options.headers), body };
}

/**
 * Makes a webhook of the deprecated bearer scheme, as a seller does: the token goes into a header field and nothing
 * is signed. Use `signDelivery` unless the buyer registered a token.
 * @throws ConfigError for an unknown option.
 * @example
 * ```ts
 * import { bearerDelivery } from 'proto-webhooks/sender';
 *
 * const token = process.env['WEBHOOK_TOKEN'] ?? '';
 * const body = { idempotency_key: crypto.randomUUID(), task_id: 'task-1', status: 'working' };
 * const delivery = bearerDelivery({ url: 'https://buyer.example/hooks', body, token });
 * await fetch(delivery.url, delivery);
 * ```
 */
export function bearerDelivery(options: BearerDeliveryOptions): SignedDelivery {
  onlyKnown('bearerDelivery', options, BEARER_NAMES);
  const { token, header } = options;
  const credential = header === undefined ? { Authorization: `Bearer ${token}` } : { [header]: token };
  const headers = { 'Content-Type': 'application/json', ...credential };
  return {
    method: 'POST',
    url: options.url,
    headers: mergeHeaders(headers, options.headers),
    body: payloadBytes(options.body),
  };
}

export type { SignatureAlgorithm } from '../crypto/algorithms.ts';
export type { Jwk } from '../crypto/engine.ts';
export type { PayloadInput, SignedDelivery } from './signed-delivery.ts';
export { generateKey, type GenerateKeyOptions, type KeyPair } from './keys.ts';

/** The five parts of a request (RFC 9421 components) that every webhook signature must cover, in their order. */
export const PROFILE_COMPONENTS: readonly string[] = REQUIRED_COMPONENTS;

/**
 * The six parameters of a signature as they are sent: key id, algorithm, tag, nonce, and two times in Unix seconds.
 * `signDelivery({ params })` replaces some of them to make invalid deliveries for tests.
 */
export interface SignatureParams {
  /** The time of signing, Unix seconds. */
  readonly created: number;
  /** The end of validity, Unix seconds: at most 300 after `created`. */
  readonly expires: number;
  /** Unpadded base64url of at least 16 random bytes, fresh for every attempt. */
  readonly nonce: string;
  readonly keyid: string;
  readonly alg: string;
  readonly tag: string;
}

/**
 * The options of `signDelivery`: the webhook's URL, the body and the private key. The other options make unusual or
 * invalid deliveries, for tests.
 */
export interface SignDeliveryOptions extends SigningInput {
  /** The buyer's webhook URL exactly as the buyer gave it. */
  readonly url: string;
  /** A private JWK of Ed25519 or P-256. Its `kid` must be the one under which the public part is published. */
  readonly key: Jwk;
  /** The protocol name in the signature's tag. Default: `proto`. */
  readonly protocol?: string | undefined;
  /** Returns the current time, Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
  /** The time from `created` to `expires`, ms; both are written in whole seconds. Default: 300 000. */
  readonly lifetimeMs?: number;
  /** The nonce of the signature. Default: 16 random bytes in base64url. */
  readonly nonce?: string;
  /** Additional header fields. A field named `Content-Type` or `Content-Digest` replaces the default one. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The names of the covered components. Default: the five of the profile. To cover more, pass e.g.
   * `[...PROFILE_COMPONENTS, 'x-trace-id']`.
   */
  readonly components?: readonly string[];
  /**
   * The base64 alphabet of signature and digest. Default: `base64url`, as the profile requires; many senders use
   * `base64`.
   */
  readonly alphabet?: 'base64url' | 'base64';
  /** If true, signature and digest end in `=` padding. Default: true for `base64`, false for `base64url`. */
  readonly padded?: boolean;
  /**
   * Values that replace signature parameters; `undefined` leaves a parameter out. Use it to make deliveries that a
   * receiver must refuse.
   */
  readonly params?: { readonly [K in keyof SignatureParams]?: SignatureParams[K] | undefined };
}

const SIGN_NAMES: Readonly<Record<keyof SignDeliveryOptions, true>> = {
  url: true,
  body: true,
  allowMalformed: true,
  key: true,
  protocol: true,
  now: true,
  lifetimeMs: true,
  nonce: true,
  headers: true,
  components: true,
  alphabet: true,
  padded: true,
  params: true,
};

const PARAM_NAMES: Readonly<Record<keyof SignatureParams, true>> = {
  created: true,
  expires: true,
  nonce: true,
  keyid: true,
  alg: true,
  tag: true,
};

const LABEL = 'sig1';
const NONCE_BYTES = 16;

const ENCODERS: Readonly<Record<'base64url' | 'base64', (bytes: Uint8Array) => string>> = {
  base64url: encodeBase64Url,
  base64: encodeBase64,
};

/** Returns the bytes as a byte sequence (RFC 8941 §3.3.5), in the requested base64 alphabet. */
function byteSequence(bytes: Uint8Array, options: SignDeliveryOptions): string {
  const { alphabet = 'base64url', padded = alphabet === 'base64' } = options;
  const digits = ENCODERS[alphabet](bytes).replace(/=+$/, '');
  return `:${padded ? digits.padEnd(Math.ceil(digits.length / 4) * 4, '=') : digits}:`;
}

/** Writes a number as an integer (RFC 8941 §3.3.1), and text as a string (§3.3.3). */
const bareItem = (value: string | number): string =>
  typeof value === 'number' ? String(value) : `"${value.replace(/["\\]/g, '\\$&')}"`;

function paramsOf(options: SignDeliveryOptions): Record<string, string | number | undefined> {
  const { now = Date.now, lifetimeMs = 300_000, key } = options;
  const kid = options.params?.keyid ?? key['kid'];
  if (typeof kid !== 'string')
    throw new ConfigError('key: the JWK has no kid. Give it the one that is published.');
  const created = options.params?.created ?? Math.floor(now() / 1000);
  return {
    created,
    expires: created + Math.round(lifetimeMs / 1000),
    nonce: options.nonce ?? encodeBase64Url(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))),
    keyid: kid,
    alg: algorithmOf(key),
    tag: protocolFor(options.protocol).signatureTag,
    ...options.params,
  };
}

/**
 * Returns the list of components with its parameters. It goes into `Signature-Input` and, byte for byte, into the
 * signature base.
 */
function signatureParams(components: readonly string[], options: SignDeliveryOptions): string {
  const list = components.map(bareItem).join(' ');
  const params = Object.entries(paramsOf(options)).flatMap(([name, value]) =>
    value === undefined ? [] : [`;${name}=${bareItem(value)}`],
  );
  return `(${list})${params.join('')}`;
}

/**
 * Signs a webhook as a seller does (RFC 9421): five covered components, a nonce, a tag and a `Content-Digest`. Sign
 * every attempt anew, so that each has its own nonce, and keep the payload's `idempotency_key`.
 * @throws ConfigError for a key that cannot sign, a component that the delivery lacks, a body that repeats a
 *   member, or an unknown option.
 * @throws TargetUriError for a URL without a canonical form.
 * @example
 * ```ts
 * import { generateKey, signDelivery } from 'proto-webhooks/sender';
 *
 * const { privateJwk } = await generateKey('ed25519');
 * const delivery = await signDelivery({
 *   url: 'https://buyer.example/hooks',
 *   body: { idempotency_key: crypto.randomUUID(), task_id: 'task-1', status: 'completed' },
 *   key: privateJwk,
 * });
 * await fetch(delivery.url, delivery);
 * ```
 */
export async function signDelivery(options: SignDeliveryOptions): Promise<SignedDelivery> {
  onlyKnown('signDelivery', options, SIGN_NAMES);
  const { url, key, components = PROFILE_COMPONENTS, params: overrides = {} } = options;
  onlyKnown('signDelivery: params', overrides, PARAM_NAMES);
  const body = bytesToSign(options);
  const digest = `sha-256=${byteSequence(createHashes().sha256(body), options)}`;
  const headers = mergeHeaders(
    { 'Content-Type': 'application/json', 'Content-Digest': digest },
    options.headers,
  );
  const params = signatureParams(components, options);
  const facts = { method: 'POST', target: canonicalTargetUri(url), headers: headerFields(headers) };
  const base = signatureBase(components, facts, params);
  if (base === undefined) {
    throw new ConfigError(`components: the delivery has no value for one of ${components.join(', ')}.`);
  }
  const signature = await signBytes(key, new TextEncoder().encode(base));
  const signed = {
    'Signature-Input': `${LABEL}=${params}`,
    Signature: `${LABEL}=${byteSequence(signature, options)}`,
  };
  return { method: 'POST', url, headers: mergeHeaders(headers, signed), body };
}
