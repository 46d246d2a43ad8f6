// Rows of the table of wrong deliveries for checks 7 to 11. The signatures have the required form, but their key may
// not sign webhooks, or they cover other content. The table in mistakes.ts takes them.
import {
  type Altered,
  but,
  detail,
  dropped,
  FIVE,
  type Given,
  narrow,
  refusedBy,
  rewritten,
  type Rows,
  textOf,
} from './mistake-row.ts';

const unknown = refusedBy(7, 'webhook_signature_key_unknown', 'key');
const purpose = refusedBy(8, 'webhook_signature_key_purpose_invalid', 'key');
const invalid = refusedBy(10, 'webhook_signature_invalid', 'signature');
const elsewhere = refusedBy(10, 'webhook_signature_invalid', 'url');
const host = refusedBy(10, 'webhook_target_uri_malformed', 'host');
const digest = refusedBy(11, 'webhook_signature_digest_mismatch', 'digest');

const keyid = (text: string): Altered => ({ params: { keyid: `"${text}"` } });

export const UNKNOWN_KEYS: Rows = {
  // The keyid is new each time, because a receiver remembers the key ids that it did not find.
  'unknown-key': unknown('No key has this keyid.', (given) => keyid(`never-published-${given.nonce}`)),
  'keyid-other-case': detail(
    unknown('A keyid is compared byte for byte.', (given) => keyid(given.keyid.toUpperCase())),
  ),
  'keyid-empty': detail(unknown('An empty keyid.', keyid(''))),
};

export const UNFIT_KEYS: Rows = {
  'alg-ed25519-key-p256': detail({
    ...purpose('alg is ed25519, but the key is P-256.', { params: { alg: '"ed25519"' } }),
    key: 'p256',
  }),
  'alg-p256-key-ed25519': {
    ...purpose('alg is ecdsa-p256-sha256, but the key is Ed25519.', {
      params: { alg: '"ecdsa-p256-sha256"' },
    }),
    key: 'ed25519',
  },
  // The next two rows need a key that is published for another purpose, and a revoked key. The conformance test cases
  // have such rows of their own, for each protocol version and revocation list.
  'wrong-purpose': but(purpose('A signature by a key for another purpose.', {}), {
    key: 'other',
    by: ['probe', 'fuzz'],
  }),
  'key-revoked': but(
    refusedBy(9, 'webhook_signature_key_revoked', 'key')('A signature by a revoked key.', {}),
    {
      key: 'revoked',
      by: ['probe', 'fuzz'],
    },
  ),
};

const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const numberOf = (big: Uint8Array): bigint => big.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
const bytesOf = (value: bigint): Uint8Array =>
  Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * (31 - i))) & 255n));
const zeros = (length: number): Uint8Array => new Uint8Array(length);
const joined = (...parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]));
const firstHalf = (both: Uint8Array): Uint8Array => both.subarray(0, 32);
const secondHalf = (both: Uint8Array): Uint8Array => both.subarray(32);

/** Encodes a number as an INTEGER of DER (ASN.1). */
function derInteger(big: Uint8Array): Uint8Array {
  const digits = big.subarray(
    Math.max(
      big.findIndex((byte) => byte !== 0),
      0,
    ),
  );
  const isNegative = (digits[0] ?? 0) >= 0x80;
  return joined(Uint8Array.of(2, digits.length + Number(isNegative)), zeros(Number(isNegative)), digits);
}

function der(both: Uint8Array): Uint8Array {
  const content = joined(derInteger(firstHalf(both)), derInteger(secondHalf(both)));
  return joined(Uint8Array.of(0x30, content.length), content);
}

/**
 * Replaces the number S of an Ed25519 signature by S + L (L is the group order). The equation still holds, but RFC 8032
 * §5.1.7 refuses the encoding.
 */
const plusOrder = (both: Uint8Array): Uint8Array =>
  joined(firstHalf(both), bytesOf(numberOf(secondHalf(both).toReversed()) + L).toReversed());

const BIT_AT: readonly number[] = [40, ...Array.from({ length: 64 }, (_, at) => at)];

const flipped = ({ pick }: Given): Altered => {
  const at = pick(BIT_AT);
  return { signature: (own) => own.map((byte, i) => (i === at ? byte ^ 1 : byte)) };
};
const signature = (change: (own: Uint8Array) => Uint8Array): Altered => ({ signature: change });

export const SIGNATURES: Rows = {
  'tampered-signature': invalid('One bit of the signature is flipped.', flipped),
  'signature-bit-flipped-p256': detail({
    ...invalid('One bit of an ECDSA signature is flipped.', flipped),
    key: 'p256',
  }),
  'signature-of-another-key': but(invalid('Signed with another key of the same sender.', { forged: true }), {
    part: 'key',
  }),
  'signature-63-bytes': detail(
    invalid(
      'A signature of 63 bytes.',
      signature((own) => own.subarray(0, 63)),
    ),
  ),
  'signature-65-bytes': detail(
    invalid(
      'A signature of 65 bytes.',
      signature((own) => joined(own, zeros(1))),
    ),
  ),
  'signature-empty': detail(
    invalid(
      'A signature of no bytes.',
      signature(() => zeros(0)),
    ),
  ),
  'signature-zeros': detail({
    ...invalid('Ed25519: 64 zero bytes.', ({ pick }) =>
      signature(() => pick([zeros(64), zeros(64).fill(255)])),
    ),
    key: 'ed25519',
  }),
  'ed25519-s-plus-order': detail({
    ...invalid('Ed25519: S + L instead of S.', signature(plusOrder)),
    key: 'ed25519',
  }),
  'ed25519-small-order-r': detail({
    ...invalid(
      'Ed25519: R is the identity.',
      signature((own) => joined(Uint8Array.of(1), zeros(31), secondHalf(own))),
    ),
    key: 'ed25519',
  }),
  'p256-der': detail({ ...invalid('ECDSA in DER.', signature(der)), key: 'p256' }),
  'p256-r-zero': detail({
    ...invalid(
      'ECDSA: r is 0.',
      signature((own) => joined(zeros(32), secondHalf(own))),
    ),
    key: 'p256',
  }),
  'p256-s-zero': detail({
    ...invalid(
      'ECDSA: s is 0.',
      signature((own) => joined(firstHalf(own), zeros(32))),
    ),
    key: 'p256',
  }),
  'p256-s-order': detail({
    ...invalid(
      'ECDSA: s is the order of the group.',
      signature((own) => joined(firstHalf(own), bytesOf(N))),
    ),
    key: 'p256',
  }),
  'p256-r-and-s-swapped': detail({
    ...invalid(
      'ECDSA: s‖r.',
      signature((own) => joined(secondHalf(own), firstHalf(own))),
    ),
    key: 'p256',
  }),
};

/** Signs a delivery for another URL, which `change` makes of the receiver's URL. */
const signedFor =
  (change: (url: string) => string) =>
  ({ url }: Given): Altered => ({ signedAs: { '@target-uri': change(url) } });

export const OTHER_URLS: Rows = {
  'signed-other-path': detail(
    elsewhere(
      'Signed for another path.',
      signedFor((url) => new URL('other', url).href),
    ),
  ),
  'wrong-url': elsewhere(
    'Signed for the URL with a query.',
    signedFor((url) => `${url}${url.includes('?') ? '&' : '?'}x=1`),
  ),
  'signed-trailing-slash': detail(
    elsewhere(
      'Signed for the URL with a trailing slash.',
      signedFor((url) => `${url}/`),
    ),
  ),
  'signed-http': detail(
    elsewhere(
      'Signed for http.',
      signedFor((url) => url.replace(/^https?/, (own) => (own === 'http' ? 'https' : 'http'))),
    ),
  ),
};

const content = refusedBy(10, 'webhook_signature_invalid', 'components');
const EMPTY_OBJECT = 'sha-256=:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o:';

export const OTHER_VALUES: Rows = {
  'signed-other-method': detail(elsewhere('Signed for PUT.', { signedAs: { '@method': 'PUT' } })),
  'signed-lower-case-method': detail(
    elsewhere('The method is in lower case in the signature base.', { signedAs: { '@method': 'post' } }),
  ),
  'signed-other-authority': detail(
    elsewhere('Signed for another authority.', { signedAs: { '@authority': 'evil.example' } }),
  ),
  'signed-other-content-type': but(
    content('Content-Type changed in transit.', {
      headers: { 'Content-Type': 'application/json; charset=utf-8' },
      signedAs: { 'content-type': 'application/json' },
    }),
    { part: 'type' },
  ),
  'signed-other-digest': detail({
    ...content('Content-Digest replaced together with the body.', {
      signedAs: { 'content-digest': EMPTY_OBJECT },
    }),
    part: 'digest',
  }),
  'signed-other-field': detail(
    content('An additional covered field changed in transit.', {
      components: [...FIVE, 'x-trace-id'],
      headers: { 'X-Trace-Id': 'one' },
      signedAs: { 'x-trace-id': 'two' },
    }),
  ),
  'parameter-changed': detail({
    ...content('A parameter changed in transit: expires, a second earlier.', {
      sent: rewritten('Signature-Input', (value) =>
        value.replace(/;expires=(\d+)/, (_, own: string) => `;expires=${Number(own) - 1}`),
      ),
    }),
    part: 'parameters',
  }),
  'component-order-changed': detail(
    content('The covered components were reordered in transit.', {
      sent: rewritten('Signature-Input', (value) =>
        value.replace('"@method" "@target-uri"', '"@target-uri" "@method"'),
      ),
    }),
  ),
};

/**
 * Makes a delivery with a wrong `Host` and an invalid signature. With a valid signature the receiver would blame its
 * own proxy for the wrong `Host`, and answer 503.
 */
const atHost =
  (named: (given: Given) => string) =>
  (given: Given): Altered => ({ ...flipped(given), headers: { Host: named(given) } });

export const HOSTS: Rows = {
  'host-differs': host(
    'Host names another authority, and the signature is for neither.',
    atHost(() => 'evil.example'),
  ),
  'host-twice': narrow(
    host('Host on two lines.', ({ url, pick }) => ({
      headers: { Host: [new URL(url).host, pick([new URL(url).host, 'evil.example'])] },
    })),
  ),
  // Only the conformance test cases have this row, because `:authority` is a pseudo-header of HTTP/2.
  'host-against-authority': but(
    host(':authority contradicts Host.', ({ url }) => ({
      headers: { ':authority': new URL(url).host, Host: 'evil.example' },
    })),
    { by: ['vectors'] },
  ),
  'host-other-port': detail(
    host(
      'Host with another port.',
      atHost(({ url }) => `${new URL(url).hostname}:8443`),
    ),
  ),
  // The fuzzer and the probe do not send the next two rows: a server that makes a URL of `Host` cannot receive them.
  'host-empty': but(
    host(
      'An empty Host.',
      atHost(() => ''),
    ),
    { by: ['seller', 'vectors'] },
  ),
  'host-malformed': but(
    host(
      'A malformed Host.',
      atHost(() => '[::1'),
    ),
    { by: ['seller', 'vectors'] },
  ),
};

const claimed = (value: string): Altered => ({ headers: { 'Content-Digest': value } });

/** Changes of a body after signing: one byte more, one byte less, or one byte changed. */
const TAMPERED: readonly ((own: Uint8Array) => Uint8Array)[] = [
  (own) => joined(own, Uint8Array.of(0x20)),
  (own) => own.map((byte, at) => (at === 0 ? byte ^ 1 : byte)),
  (own) => own.map((byte, at) => (at === own.length >> 1 ? byte ^ 0x80 : byte)),
  (own) => own.subarray(0, -1),
];

export const DIGESTS: Rows = {
  'tampered-body': but(
    digest('The body was changed after signing.', ({ pick }) => ({ sentBody: pick(TAMPERED) })),
    { part: 'body' },
  ),
  'digest-of-compact-body': detail(
    digest('The body was serialised again: the digest is of its compact form.', {
      body: '{ "a": 1 }',
      ...claimed('sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX-GI:'),
    }),
  ),
  'digest-sha-512-only': digest('No sha-256 member.', {
    body: '{"a":1}',
    ...claimed(
      'sha-512=:77eoKY-QWudD2-IVLhYkFfYqFtLVrFx4gW3NVxFOeldHKbgTmI8dCYTPbzjE_Mmjfqn-w9o1GYNTb3J4XXq3Bw:',
    ),
  }),
  'digest-of-empty-body': detail(
    digest('The digest of no bytes.', claimed('sha-256=:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU:')),
  ),
};

const BROKEN = '{"a":';

/** Wrong deliveries with two mistakes each. The receiver must answer with the error of the check that comes first. */
export const ORDERED: Rows = {
  'unsigned-not-json': but(
    refusedBy(
      1,
      'webhook_signature_header_malformed',
      'signature',
    )('No signature, and a body that is not JSON.', (given) => ({
      body: textOf(given.body).slice(0, -1),
      sent: dropped('Signature', 'Signature-Input'),
    })),
    { by: ['probe', 'seller'] },
  ),
  'tampered-not-json': but(
    digest('Another body than the signed one, and not JSON.', {
      sentBody: () => new TextEncoder().encode(BROKEN),
    }),
    { by: ['probe', 'seller'], part: 'body' },
  ),
};
