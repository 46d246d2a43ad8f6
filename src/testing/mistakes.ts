import type { SignDeliveryOptions, SignedDelivery } from '../sender/sign.ts';

/** What can be wrong with a signed delivery, for `deliver(payload, { mistake })`. */
export type Mistake =
  | 'tampered-body'
  | 'tampered-signature'
  | 'wrong-tag'
  | 'wrong-url'
  | 'expired'
  | 'unknown-key'
  | 'unsigned'
  | 'duplicate-json-key'
  | 'not-json'
  | 'text-plain'
  | 'oversize';

/** What a mistake changes in a delivery, before it is signed or on its way, and what a receiver answers. */
export interface Spoiling {
  readonly status: number;
  /** In `WWW-Authenticate`, where the answer is a 401. */
  readonly code?: string;
  /** What becomes of the bytes before they are signed. */
  readonly body?: (bytes: Uint8Array) => Uint8Array;
  /** What is signed otherwise. */
  readonly sign?: (options: SignDeliveryOptions) => Partial<SignDeliveryOptions>;
  /** What happens to the delivery after it was signed. */
  readonly sent?: (delivery: SignedDelivery) => SignedDelivery;
}

const SIGNATURE_FIELDS: ReadonlySet<string> = new Set(['signature', 'signature-input']);

const onText =
  (change: (text: string) => string) =>
  (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
    new TextEncoder().encode(change(new TextDecoder().decode(bytes)));

/** The first digit of the signature, replaced by another of both alphabets. */
const flipped = (value: string): string =>
  value.replace(/:(.)/, (_, digit: string) => (digit === 'A' ? ':B' : ':A'));

function tamperedSignature(delivery: SignedDelivery): SignedDelivery {
  const signature = flipped(delivery.headers['Signature'] ?? '');
  return { ...delivery, headers: { ...delivery.headers, Signature: signature } };
}

function unsigned(delivery: SignedDelivery): SignedDelivery {
  const kept = Object.entries(delivery.headers).filter(([name]) => !SIGNATURE_FIELDS.has(name.toLowerCase()));
  return { ...delivery, headers: Object.fromEntries(kept) };
}

/** Over the default `maxBodyBytes`, and still JSON. */
const padded = (text: string): string => text.padEnd(1_048_577);

/** The first member once more, in front of itself. */
const doubled = (text: string): string => text.replace(/\{\s*("(?:[^"\\]|\\.)*")/, '{$1:null,$1');

/** Every mistake with what it does and what it gets. */
export const MISTAKES: Readonly<Record<Mistake, Spoiling>> = {
  'tampered-body': {
    status: 401,
    code: 'webhook_signature_digest_mismatch',
    sent: (delivery) => ({ ...delivery, body: onText((text) => `${text} `)(delivery.body) }),
  },
  'tampered-signature': { status: 401, code: 'webhook_signature_invalid', sent: tamperedSignature },
  'wrong-tag': {
    status: 401,
    code: 'webhook_signature_tag_invalid',
    sign: ({ protocol = 'proto' }) => ({ params: { tag: `${protocol}/request-signing/v1` } }),
  },
  'wrong-url': {
    status: 401,
    code: 'webhook_signature_invalid',
    sign: ({ url }) => ({ url: `${url}${url.includes('?') ? '&' : '?'}elsewhere` }),
  },
  expired: {
    status: 401,
    code: 'webhook_signature_window_invalid',
    sign: ({ now = Date.now }) => ({ now: () => now() - 600_000 }),
  },
  // 503 instead while the receiver may not ask for the JWKS again, which it does once in 30 s.
  'unknown-key': {
    status: 401,
    code: 'webhook_signature_key_unknown',
    sign: () => ({ params: { keyid: 'never-published' } }),
  },
  unsigned: { status: 401, code: 'webhook_signature_header_malformed', sent: unsigned },
  'duplicate-json-key': { status: 401, code: 'webhook_body_malformed', body: onText(doubled) },
  'not-json': { status: 401, code: 'webhook_body_malformed', body: onText((text) => text.slice(0, -1)) },
  'text-plain': { status: 415, sign: () => ({ headers: { 'Content-Type': 'text/plain' } }) },
  oversize: { status: 413, body: onText(padded) },
};
