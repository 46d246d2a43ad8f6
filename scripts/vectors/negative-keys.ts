import { AGENT, encode, type Json, KEYS, nonceOf, sha256, testKey, type TestKey, without } from './kit.ts';
import {
  DIGESTS,
  HOSTS,
  OTHER_URLS,
  OTHER_VALUES,
  SIGNATURES,
  UNFIT_KEYS,
  UNKNOWN_KEYS,
  BODIES,
  SCHEMES,
} from '../../src/testing/for-tests.ts';
import { fromTable, type Refused } from './mistakes.ts';
import type { Signing } from './sign.ts';

const { ed25519, p256, second, request, other } = KEYS;

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

const flipped = (bytes: Uint8Array): Uint8Array =>
  Uint8Array.from(bytes, (byte, i) => (i === 40 ? byte ^ 1 : byte));

const UNKNOWN: readonly Refused[] = [
  ...fromTable(UNKNOWN_KEYS),
  {
    name: 'keys-empty',
    description: 'The sender has no keys.',
    more: { jwks_override: { keys: [] } },
    code: 'webhook_signature_key_unknown',
    check: 7,
    base: true,
  },
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
  ...fromTable(UNFIT_KEYS),
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

const SIGNATURE: readonly Refused[] = [
  ...fromTable(SIGNATURES, OTHER_URLS),
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
  ...fromTable(OTHER_VALUES),
];

/** One that would fit was rewritten by a proxy of the receiver's. */
const PROXY: Refused = {
  name: 'host-differs-signature-valid',
  description:
    'Host names another authority and the signature is right: a proxy of the receiver rewrote it, so 503.',
  signing: { headers: { Host: 'evil.example' } },
  code: 'webhook_target_uri_malformed',
  check: 10,
  status: 503,
  challenge: null,
  base: true,
};
const [hostDiffers, ...otherHosts] = fromTable(HOSTS);

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
  ...fromTable(SCHEMES),
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
  ...(hostDiffers ? [hostDiffers, PROXY] : []),
  ...otherHosts,
  ...fromTable(DIGESTS, BODIES),
  ...MODES,
  ...COLLISIONS,
];
