import {
  AGENT,
  encode,
  type Json,
  KEYS,
  nonceOf,
  sha256,
  sha512,
  testKey,
  type TestKey,
  utf8,
  without,
} from './kit.ts';
import type { Refused } from './negative-headers.ts';
import { byteSequence, COMPONENTS, envelope, type Signing } from './sign.ts';

const { ed25519, p256, second, request, other } = KEYS;

const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const bigEndian = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
const toBytes = (value: bigint): Uint8Array =>
  new Uint8Array(Buffer.from(value.toString(16).padStart(64, '0'), 'hex'));

/** One INTEGER of DER. */
function derInteger(bytes: Uint8Array): number[] {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = [...bytes.subarray(Math.max(start, 0))];
  const signed = (digits[0] ?? 0) >= 0x80 ? [0, ...digits] : digits;
  return [2, signed.length, ...signed];
}

const der = (bytes: Uint8Array): Uint8Array => {
  const content = [...derInteger(bytes.subarray(0, 32)), ...derInteger(bytes.subarray(32))];
  return Uint8Array.from([0x30, content.length, ...content]);
};

const flipped = (bytes: Uint8Array): Uint8Array =>
  Uint8Array.from(bytes, (byte, i) => (i === 40 ? byte ^ 1 : byte));
const withScalar =
  (change: (s: bigint) => bigint) =>
  (bytes: Uint8Array): Uint8Array =>
    Uint8Array.from([...bytes.subarray(0, 32), ...toBytes(change(bigEndian(bytes.subarray(32))))]);
/** S + L: the same equation, another encoding (RFC 8032 §5.1.7 refuses it). */
const plusOrder = (bytes: Uint8Array): Uint8Array => {
  const s = bigEndian(bytes.subarray(32).toReversed()) + L;
  return Uint8Array.from([...bytes.subarray(0, 32), ...toBytes(s).toReversed()]);
};

const unknown = (name: string, description: string, more: Pick<Refused, 'signing' | 'more'>): Refused => ({
  name,
  description,
  ...more,
  code: 'webhook_signature_key_unknown',
  check: 7,
  base: true,
});
const purpose = (name: string, description: string, more: Pick<Refused, 'signing' | 'more'>): Refused => ({
  name,
  description,
  ...more,
  code: 'webhook_signature_key_purpose_invalid',
  check: 8,
  base: true,
});
const override = (jwk: Json, key: TestKey = ed25519): Json => ({
  jwks_override: { [key.kid]: { ...jwk, kid: key.kid } },
});

const UNKNOWN: readonly Refused[] = [
  unknown('keyid-unknown', 'No key has the keyid.', { signing: { params: { keyid: '"never-published"' } } }),
  unknown('keyid-other-case', 'A keyid is compared byte for byte.', {
    signing: { params: { keyid: `"${ed25519.kid.toUpperCase()}"` } },
  }),
  unknown('keyid-empty', 'An empty keyid.', { signing: { params: { keyid: '""' } } }),
  unknown('keys-empty', 'The sender has no keys.', { more: { jwks_override: { keys: [] } } }),
];

const IDENTITY = encode(Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : 0)));
/** y = p + 1, which is y = 1 written otherwise. */
const NON_CANONICAL = encode(
  Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? 0xee : i === 31 ? 0x7f : 0xff)),
);
const ORDER_8 = encode(
  new Uint8Array(Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex')),
);
const zeros = (length: number): Uint8Array => new Uint8Array(length);

const PURPOSE: readonly Refused[] = [
  purpose('purpose-request-edition-3.0', 'A request-signing key is refused in edition 3.0.', {
    signing: { key: request },
    more: { edition: '3.0' },
  }),
  purpose('purpose-other-edition-3.1', 'A key of another purpose is refused in edition 3.1.', {
    signing: { key: other },
    more: { edition: '3.1' },
  }),
  purpose('purpose-other-edition-3.2', 'A key of another purpose is refused in edition 3.2.', {
    signing: { key: other },
    more: { edition: '3.2' },
  }),
  purpose('purpose-absent', 'The JWK states no purpose.', {
    more: override(without(ed25519.jwk, 'proto_use')),
  }),
  purpose('purpose-array', 'The purpose is an array.', {
    more: override({ ...ed25519.jwk, proto_use: ['webhook-signing'] }),
  }),
  purpose('use-enc', 'use is enc.', { more: override({ ...ed25519.jwk, use: 'enc' }) }),
  purpose('use-absent', 'use is absent.', { more: override(without(ed25519.jwk, 'use')) }),
  purpose('key-ops-sign', 'key_ops is sign only.', { more: override({ ...ed25519.jwk, key_ops: ['sign'] }) }),
  purpose('key-ops-absent', 'key_ops is absent.', { more: override(without(ed25519.jwk, 'key_ops')) }),
  purpose('alg-ed25519-key-p256', 'alg is ed25519, the key is P-256.', {
    signing: { key: p256, params: { alg: '"ed25519"' } },
  }),
  purpose('alg-p256-key-ed25519', 'alg is ecdsa-p256-sha256, the key is Ed25519.', {
    signing: { params: { alg: '"ecdsa-p256-sha256"' } },
  }),
  purpose('jwk-alg-absent', 'The JWK has no alg.', { more: override(without(ed25519.jwk, 'alg')) }),
  purpose('jwk-alg-other', 'The JWK’s alg is that of another curve.', {
    more: override({ ...ed25519.jwk, alg: 'ES256' }),
  }),
  purpose('jwk-oct', 'A symmetric key.', {
    more: override({ ...without(ed25519.jwk, 'x', 'crv'), kty: 'oct', k: encode(zeros(32)) }),
  }),
  purpose('jwk-rsa', 'An RSA key.', {
    more: override({
      ...without(ed25519.jwk, 'x', 'crv'),
      kty: 'RSA',
      alg: 'PS512',
      n: encode(zeros(256).fill(0xff)),
      e: 'AQAB',
    }),
  }),
  purpose('jwk-p384', 'A key on another curve.', {
    signing: { key: p256 },
    more: override({ ...p256.jwk, crv: 'P-384' }, p256),
  }),
  purpose('jwk-ed25519-31-bytes', 'A public key of 31 bytes.', {
    more: override({ ...ed25519.jwk, x: encode(zeros(31).fill(7)) }),
  }),
  purpose('jwk-ed25519-identity', 'The identity as public key: some verifiers take any signature under it.', {
    more: override({ ...ed25519.jwk, x: IDENTITY }),
    signing: { signature: () => Uint8Array.from([1, ...zeros(63)]) },
  }),
  purpose('jwk-ed25519-order-8', 'A public key of order 8.', {
    more: override({ ...ed25519.jwk, x: ORDER_8 }),
  }),
  purpose('jwk-ed25519-non-canonical', 'A public key whose y is not below p.', {
    more: override({ ...ed25519.jwk, x: NON_CANONICAL }),
  }),
  purpose('jwk-p256-off-curve', 'A point that is not on P-256.', {
    signing: { key: p256 },
    more: override({ ...p256.jwk, y: p256.jwk['x'] }, p256),
  }),
  purpose('jwk-p256-zero', 'The coordinates 0, 0.', {
    signing: { key: p256 },
    more: override({ ...p256.jwk, x: encode(zeros(32)), y: encode(zeros(32)) }, p256),
  }),
];

const revoked = { revoked_kids: [ed25519.kid] };
const STATE: readonly Refused[] = [
  {
    name: 'key-revoked',
    description: 'keyid is on the operator’s list.',
    more: { test_harness_state: revoked },
    code: 'webhook_signature_key_revoked',
    check: 9,
    base: true,
  },
  {
    name: 'key-revoked-stale-list',
    description: 'keyid is on a list that is stale: revoked stays revoked.',
    more: { test_harness_state: { ...revoked, revocation_list_stale_seconds: 3600 } },
    code: 'webhook_signature_key_revoked',
    check: 9,
    base: true,
  },
  {
    name: 'revocation-stale',
    description: 'The list is stale: the receiver’s fault, so 503 and no challenge.',
    more: { test_harness_state: { revocation_list_stale_seconds: 1 } },
    code: 'webhook_signature_revocation_stale',
    check: 9,
    status: 503,
    challenge: null,
    base: true,
  },
  {
    name: 'rate-abuse',
    description: 'The key id’s cap of live nonces is reached: 429 and no challenge.',
    more: { test_harness_state: { per_keyid_cap_filled_for: ed25519.kid } },
    code: 'webhook_signature_rate_abuse',
    check: '9a',
    status: 429,
    challenge: null,
    base: true,
  },
  {
    name: 'replayed',
    description: 'The nonce was seen with this key id.',
    more: {
      test_harness_state: { replay_cache_entries: [{ keyid: ed25519.kid, nonce: nonceOf('replayed') }] },
    },
    code: 'webhook_signature_replayed',
    check: 12,
    base: true,
  },
];

const invalid = (name: string, description: string, signing: Signing, more?: Json): Refused => ({
  name,
  description,
  signing,
  ...(more && { more }),
  code: 'webhook_signature_invalid',
  check: 10,
  base: true,
});
const at = (url: string): Signing => ({ url, targetUri: url });

const replaced =
  (from: string, to: string): NonNullable<Signing['sent']> =>
  (headers) => ({ ...headers, 'Signature-Input': String(headers['Signature-Input']).replace(from, to) });

const SIGNATURE: readonly Refused[] = [
  invalid('signature-bit-flipped', 'One bit of the signature is another.', { signature: flipped }),
  invalid('signature-bit-flipped-p256', 'One bit of an ECDSA signature is another.', {
    key: p256,
    signature: flipped,
  }),
  invalid(
    'signature-of-another-key',
    'Signed with another key of the same sender.',
    { key: second, params: { keyid: `"${ed25519.kid}"` } },
    { jwks_ref: [ed25519.kid] },
  ),
  invalid('signature-63-bytes', 'A signature of 63 bytes.', { signature: (bytes) => bytes.subarray(0, 63) }),
  invalid('signature-65-bytes', 'A signature of 65 bytes.', {
    signature: (bytes) => Uint8Array.from([...bytes, 0]),
  }),
  invalid('signature-empty', 'A signature of no bytes.', { signature: () => zeros(0) }),
  invalid('signature-zeros', 'Ed25519: 64 zero bytes.', { signature: () => zeros(64) }),
  invalid('ed25519-s-plus-order', 'Ed25519: S + L instead of S.', { signature: plusOrder }),
  invalid('ed25519-small-order-r', 'Ed25519: R is the identity.', {
    signature: (bytes) => Uint8Array.from([1, ...zeros(31), ...bytes.subarray(32)]),
  }),
  invalid('p256-der', 'ECDSA in DER.', { key: p256, signature: der }),
  invalid('p256-r-zero', 'ECDSA: r is 0.', {
    key: p256,
    signature: (bytes) => Uint8Array.from([...zeros(32), ...bytes.subarray(32)]),
  }),
  invalid('p256-s-zero', 'ECDSA: s is 0.', { key: p256, signature: withScalar(() => 0n) }),
  invalid('p256-s-order', 'ECDSA: s is the order of the group.', {
    key: p256,
    signature: withScalar(() => N),
  }),
  invalid('p256-r-and-s-swapped', 'ECDSA: s‖r.', {
    key: p256,
    signature: (bytes) => Uint8Array.from([...bytes.subarray(32), ...bytes.subarray(0, 32)]),
  }),
  invalid('signed-other-path', 'Signed for another path.', {
    signedAs: { '@target-uri': 'https://buyer.example/webhooks/other' },
  }),
  invalid('signed-other-query', 'Signed for the URL with a query.', {
    signedAs: { '@target-uri': 'https://buyer.example/webhooks/proto?x=1' },
  }),
  invalid('signed-trailing-slash', 'Signed for the URL with a trailing slash.', {
    signedAs: { '@target-uri': 'https://buyer.example/webhooks/proto/' },
  }),
  invalid('signed-http', 'Signed for http.', {
    signedAs: { '@target-uri': 'http://buyer.example/webhooks/proto' },
  }),
  invalid('signed-not-canonical', 'Signed over the URL as given instead of its canonical form.', {
    url: 'https://buyer.example:443/a/../hooks',
    targetUri: 'https://buyer.example/hooks',
    signedAs: { '@target-uri': 'https://buyer.example:443/a/../hooks' },
  }),
  invalid('signed-query-normalised', 'Signed over a normalised query.', {
    ...at('https://buyer.example/hooks?a=%7e'),
    signedAs: { '@target-uri': 'https://buyer.example/hooks?a=~' },
  }),
  invalid('signed-idn-transitional', 'Signed over the transitional form of an IDN.', {
    url: 'https://faß.example/hooks',
    targetUri: 'https://xn--fa-hia.example/hooks',
    authority: 'xn--fa-hia.example',
    signedAs: { '@target-uri': 'https://fass.example/hooks', '@authority': 'fass.example' },
  }),
  invalid('signed-other-method', 'Signed for PUT.', { signedAs: { '@method': 'PUT' } }),
  invalid('signed-lower-case-method', 'The method in lower case in the base.', {
    signedAs: { '@method': 'post' },
  }),
  invalid('signed-other-authority', 'Signed for another authority.', {
    signedAs: { '@authority': 'evil.example' },
  }),
  invalid('signed-other-content-type', 'Content-Type changed on the way.', {
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    signedAs: { 'content-type': 'application/json' },
  }),
  invalid('signed-other-digest', 'Content-Digest replaced together with the body.', {
    signedAs: { 'content-digest': `sha-256=${byteSequence(sha256('{}'))}` },
  }),
  invalid('signed-other-field', 'An additional covered field changed on the way.', {
    components: [...COMPONENTS, 'x-trace-id'],
    headers: { 'X-Trace-Id': 'one' },
    signedAs: { 'x-trace-id': 'two' },
  }),
  // The verifier's base is another than the one that `sign` knows.
  ...[
    invalid('parameter-changed', 'A parameter changed on the way: expires, a second earlier.', {
      sent: replaced(';expires=1790000300', ';expires=1790000299'),
    }),
    invalid('component-order-changed', 'The covered components were put in another order on the way.', {
      sent: replaced('"@method" "@target-uri"', '"@target-uri" "@method"'),
    }),
  ].map((refused) => ({ ...refused, base: false })),
];

const target = (
  name: string,
  description: string,
  signing: Signing,
  more: Partial<Refused> = {},
): Refused => ({
  name,
  description,
  signing,
  code: 'webhook_target_uri_malformed',
  check: 10,
  base: true,
  ...more,
});
const elsewhere: Signing = { headers: { Host: 'evil.example' } };

const HOSTS: readonly Refused[] = [
  target('host-differs', 'Host names another authority, and the signature is for none of it.', {
    ...elsewhere,
    signature: flipped,
  }),
  target(
    'host-differs-signature-valid',
    'Host names another authority and the signature is right: a proxy of the receiver rewrote it, so 503.',
    elsewhere,
    { status: 503, challenge: null },
  ),
  target('host-twice', 'Host on two lines.', { headers: { Host: ['buyer.example', 'buyer.example'] } }),
  target('host-against-authority', ':authority against Host.', {
    headers: { ':authority': 'buyer.example', Host: 'evil.example' },
  }),
  target('host-other-port', 'Host with another port.', {
    headers: { Host: 'buyer.example:8443' },
    signature: flipped,
  }),
  target('host-empty', 'An empty Host.', { headers: { Host: '' }, signature: flipped }),
  target('host-malformed', 'A Host that is none.', { headers: { Host: '[::1' }, signature: flipped }),
];

const digest = (name: string, description: string, signing: Signing): Refused => ({
  name,
  description,
  signing,
  code: 'webhook_signature_digest_mismatch',
  check: 11,
  base: true,
});
const DIGEST: readonly Refused[] = [
  digest('digest-of-another-body', 'The body was changed after signing.', {
    headers: { 'Content-Digest': `sha-256=${byteSequence(sha256('another body'))}` },
  }),
  digest('digest-of-compact-body', 'The body was serialised again: the digest is that of its compact form.', {
    body: '{ "a": 1 }',
    headers: { 'Content-Digest': `sha-256=${byteSequence(sha256('{"a":1}'))}` },
  }),
  digest('digest-sha-512-only', 'No sha-256 member.', {
    body: '{"a":1}',
    headers: { 'Content-Digest': `sha-512=${byteSequence(sha512('{"a":1}'))}` },
  }),
  digest('digest-of-empty-body', 'The digest of no bytes.', {
    headers: { 'Content-Digest': `sha-256=${byteSequence(sha256(''))}` },
  }),
];

const body = (name: string, description: string, bytes: string | Uint8Array): Refused => ({
  name,
  description,
  signing: { body: bytes },
  code: 'webhook_body_malformed',
  check: 14,
  base: true,
});
const whole = JSON.stringify(envelope('body'));
const BODIES: readonly Refused[] = [
  body('body-duplicate-key', 'A key twice at the top.', '{"status":"completed","status":"failed"}'),
  body('body-duplicate-key-equal-values', 'A key twice with the same value.', '{"a":1,"a":1}'),
  body(
    'body-duplicate-key-nested',
    'A key twice in a nested object.',
    '{"result":{"a":{"b":1,"c":2,"b":3}}}',
  ),
  body(
    'body-duplicate-key-in-array',
    'A key twice in an object of an array.',
    '{"result":[[1,{"a":1,"a":2}]]}',
  ),
  body('body-duplicate-key-escaped', 'A key twice, once escaped.', '{"a":1,"\\u0061":2}'),
  body(
    'body-duplicate-key-escaped-nested',
    'A key twice in depth, both escaped.',
    '{"r":[{"\\u0073pend":1,"s\\u0070end":2}]}',
  ),
  body('body-duplicate-proto-key', '__proto__ twice.', '{"__proto__":1,"__proto__":2}'),
  body('body-duplicate-empty-key', 'The empty key twice.', '{"":1,"":2}'),
  body('body-truncated', 'The body ends too early.', whole.slice(0, -1)),
  body('body-trailing-text', 'Text after the object.', `${whole}x`),
  body('body-two-objects', 'Two objects.', '{"a":1}{"b":2}'),
  body('body-trailing-comma', 'A trailing comma.', '{"a":1,}'),
  body('body-single-quotes', 'Single quotes.', "{'a':1}"),
  body('body-comment', 'A comment.', '{"a":1/* */}'),
  body('body-nan', 'NaN is no JSON.', '{"a":NaN}'),
  body('body-leading-zero', 'A number with a leading zero.', '{"a":01}'),
  body('body-control-character', 'A raw control character in a string.', '{"a":"\n"}'),
  body('body-empty', 'No bytes.', ''),
  body('body-array', 'An array.', '[{"a":1}]'),
  body('body-string', 'A string.', '"text"'),
  body('body-null', 'null.', 'null'),
  body(
    'body-invalid-utf-8',
    'Bytes that are no UTF-8.',
    Uint8Array.from([...utf8('{"a":"'), 0xff, ...utf8('"}')]),
  ),
  body(
    'body-overlong-utf-8',
    'An overlong encoding.',
    Uint8Array.from([...utf8('{"a":"'), 0xc0, 0xaf, ...utf8('"}')]),
  ),
  body('body-utf-16', 'UTF-16.', new Uint8Array(Buffer.from('{"a":1}', 'utf16le'))),
];

const SECRET = 'a-shared-secret-of-these-test-vectors-only';
const hmacSender = { authentication: { schemes: ['HMAC-SHA256'], credentials: SECRET } };
const bearerSender = { authentication: { schemes: ['Bearer'], credentials: SECRET } };
const unsigned = (headers: Signing['headers'] = {}): Signing => ({
  sent: () => ({ 'Content-Type': 'application/json', ...headers }),
});
const hmacHeaders = {
  'X-PROTO-Signature': `sha256=${Buffer.from(sha256('')).toString('hex')}`,
  'X-PROTO-Timestamp': '1790000000',
};
const mode = (name: string, description: string, signing: Signing, more?: Json): Refused => ({
  name,
  description,
  signing,
  ...(more && { more }),
  code: 'webhook_mode_mismatch',
});

const MODES: readonly Refused[] = [
  mode('mode-hmac-at-signature-sender', 'HMAC headers from a sender of signatures.', unsigned(hmacHeaders)),
  mode('mode-hmac-beside-signature', 'HMAC headers beside a valid signature.', { headers: hmacHeaders }),
  mode(
    'mode-bearer-at-signature-sender',
    'A bearer token alone from a sender of signatures.',
    unsigned({ Authorization: `Bearer ${SECRET}` }),
  ),
  mode(
    'mode-signature-at-hmac-sender',
    'A valid signature from a sender registered with HMAC.',
    {},
    hmacSender,
  ),
  mode(
    'mode-bearer-at-hmac-sender',
    'A bearer token alone from a sender registered with HMAC.',
    unsigned({ Authorization: `Bearer ${SECRET}` }),
    hmacSender,
  ),
  mode(
    'mode-signature-at-bearer-sender',
    'A valid signature from a sender registered with a bearer token.',
    {},
    bearerSender,
  ),
  mode(
    'mode-hmac-at-bearer-sender',
    'HMAC headers from a sender registered with a bearer token.',
    unsigned(hmacHeaders),
    bearerSender,
  ),
];

const shared = testKey('ed25519', 'webhook-signing', 'shared-kid');
const collision = (first: TestKey, last: TestKey): Json => ({
  senders: [first, last].map((key, index) => ({
    agent_url: index === 0 ? 'https://other-seller.example/mcp' : AGENT,
    jwks_ref: [],
    jwks_override: { 'shared-kid': { ...key.jwk, kid: 'shared-kid' } },
  })),
});
const COLLISIONS: readonly Refused[] = [
  invalid(
    'kid-collision-neither',
    'Two senders publish the kid, and neither’s key verifies.',
    { key: shared, signature: flipped },
    collision(second, shared),
  ),
];

export const NEGATIVE_KEYS: readonly Refused[] = [
  ...UNKNOWN,
  ...PURPOSE,
  ...STATE,
  ...SIGNATURE,
  ...HOSTS,
  ...DIGEST,
  ...BODIES,
  ...MODES,
  ...COLLISIONS,
];
