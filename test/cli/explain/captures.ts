import { derSignature } from '../../../src/crypto/for-tests.ts';
import {
  type Capture,
  explainDelivery,
  type ExplainInput,
  type Explanation,
} from '../../../src/cli/for-tests.ts';
import {
  generateKey,
  type KeyPair,
  signDelivery,
  type SignDeliveryOptions,
  type SignedDelivery,
} from '../../../src/sender/sign.ts';

export const URL_GIVEN = 'https://buyer.example/webhooks/proto?tenant=a%2Cb&n=1';
export const NOW = Date.UTC(2026, 0, 31, 12, 0, 0);

/** A body in which every serialiser leaves its mark: non-ASCII, a slash, HTML, nesting, members out of order, 1.0. */
export const BODY =
  '{"task_id":"task_1","idempotency_key":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff","status":"completed","message":"Caf\u00e9 <b>https://x/y</b>","result":{"z":[1,2.0,{"b":true}],"a":null}}';

export interface Keys {
  readonly ed25519: KeyPair;
  readonly p256: KeyPair;
  readonly other: KeyPair;
}

let made: Promise<Keys> | undefined;

export function keys(): Promise<Keys> {
  const make = async (): Promise<Keys> => ({
    ed25519: await generateKey('ed25519', 'webhook-signing', { kid: 'first' }),
    p256: await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'second' }),
    other: await generateKey('ed25519', 'webhook-signing', { kid: 'third' }),
  });
  return (made ??= make());
}

/** A delivery that a seller signed well, for `URL_GIVEN` unless told otherwise. */
export async function signed(options: Partial<SignDeliveryOptions> = {}): Promise<SignedDelivery> {
  const { ed25519 } = await keys();
  return signDelivery({ url: URL_GIVEN, body: BODY, key: ed25519.privateJwk, now: () => NOW, ...options });
}

export const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
export const bytes = (value: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(value);

/** What the receiver saw. */
export function captured(delivery: SignedDelivery, changes: Partial<Capture> = {}): Capture {
  return {
    form: 'raw HTTP',
    method: 'POST',
    url: undefined,
    target: /^https?:\/\/[^/]*(.*)$/.exec(delivery.url)?.[1] ?? '/',
    headers: Object.entries(delivery.headers),
    body: delivery.body,
    notes: [],
    ...changes,
  };
}

export const withHeaders = (
  delivery: SignedDelivery,
  more: Readonly<Record<string, string>>,
): SignedDelivery => ({
  ...delivery,
  headers: { ...delivery.headers, ...more },
});

/** The explanation of a receiver that is configured with `URL_GIVEN` and all keys. */
export async function explained(capture: Capture, changes: Partial<ExplainInput> = {}): Promise<Explanation> {
  const { ed25519, p256, other } = await keys();
  return explainDelivery({
    capture,
    url: URL_GIVEN,
    senders: [
      {
        agentUrl: 'https://seller.example/mcp',
        pins: [ed25519.publicJwk, p256.publicJwk, other.publicJwk],
      },
    ],
    revocations: { state: 'none' },
    receivedAt: NOW,
    ...changes,
  });
}

/** The signature as DER, base64url. */
export function derText(value: string): string {
  const raw = Buffer.from(/:(.*):/.exec(value)?.[1] ?? '', 'base64url');
  return Buffer.from(derSignature(raw)).toString('base64url');
}
