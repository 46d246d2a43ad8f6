import { hex } from '../codec/encoding.ts';
import { requireSecret } from '../config/auth.ts';
import { onlyKnown } from '../config/validate.ts';
import { createHashes } from '../crypto/hashes.ts';
import { protocolFor } from '../protocol.ts';
import { bytesToSign, mergeHeaders, payloadBytes } from './delivery.ts';
import type { PayloadInput, SignedDelivery, SigningInput } from './delivery.ts';

interface LegacyDelivery {
  /** The buyer's webhook URL. */
  readonly url: string;
  readonly body: PayloadInput;
  /** Sent beside the scheme's own; the same name replaces. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `signHmac`'s options. */
export interface HmacDeliveryOptions extends LegacyDelivery, SigningInput {
  /** The shared secret of `push_notification_config.authentication.credentials`, at least 32 characters. */
  readonly secret: string;
  /** Name in wire identifiers. `proto`. */
  readonly protocol?: string;
  /** Unix ms. `Date.now`. */
  readonly now?: () => number;
}

/** `bearerDelivery`'s options. */
export interface BearerDeliveryOptions extends LegacyDelivery {
  /** The token of `push_notification_config.authentication.credentials`, at least 32 characters. */
  readonly token: string;
  /** The field that has the token alone, e.g. `X-A2A-Notification-Token`. `Authorization: Bearer …`. */
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
 * Signs a delivery with the deprecated HMAC-SHA256 scheme, over `<timestamp>.<raw body>`
 * (contract.md §5.14). Use `signDelivery` unless the buyer registered a secret.
 * @throws ConfigError for a secret under 32 characters, a body with a member twice, an option that does not exist.
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
 * Makes a delivery of the deprecated bearer scheme (contract.md §5.17).
 * @throws ConfigError for an option that does not exist.
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
