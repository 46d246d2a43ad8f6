import { AGENT, encode, type Json, KEYS, nonceOf, NOW, sha256, sha512, testKey } from './kit.ts';
import {
  byteSequence,
  COMPONENTS,
  envelope,
  jwksRef,
  sign,
  type Signed,
  type Signing,
  signWithBoth,
} from './sign.ts';

/** What a signature vector has besides what `sign` makes. */
export interface Case {
  readonly name: string;
  readonly description: string;
  readonly signing?: Signing;
  /** Made otherwise than by `sign(name, signing)`. */
  readonly signed?: Signed;
  /** Further members of the file. */
  readonly more?: Json;
  readonly sender?: string;
}

const OTHER_AGENT = 'https://other-seller.example/mcp';

/** URLs with their canonical form, written by hand from verification.md §4.1 to §4.8. */
const URLS: readonly (readonly [
  name: string,
  description: string,
  url: string,
  targetUri: string,
  authority: string,
])[] = [
  [
    'url-default-port',
    'The default port is left out.',
    'https://buyer.example:443/webhooks/proto',
    'https://buyer.example/webhooks/proto',
    'buyer.example',
  ],
  [
    'url-other-port',
    'Another port stays, in both.',
    'https://buyer.example:8443/webhooks/proto',
    'https://buyer.example:8443/webhooks/proto',
    'buyer.example:8443',
  ],
  [
    'url-upper-case',
    'Scheme and host in lower case, the path as it is.',
    'HTTPS://Buyer.EXAMPLE/Webhooks/Proto',
    'https://buyer.example/Webhooks/Proto',
    'buyer.example',
  ],
  [
    'url-dot-segments',
    'Dot segments are removed.',
    'https://buyer.example/a/./b/../webhooks/proto',
    'https://buyer.example/a/webhooks/proto',
    'buyer.example',
  ],
  [
    'url-empty-path',
    'An empty path becomes a slash.',
    'https://buyer.example',
    'https://buyer.example/',
    'buyer.example',
  ],
  [
    'url-consecutive-slashes',
    'Consecutive slashes stay.',
    'https://buyer.example//webhooks//proto',
    'https://buyer.example//webhooks//proto',
    'buyer.example',
  ],
  [
    'url-percent-encoding',
    'Unreserved characters are decoded, hexadecimal digits are in upper case.',
    'https://buyer.example/%7euser/%41/%2f%c3%a9',
    'https://buyer.example/~user/A/%2F%C3%A9',
    'buyer.example',
  ],
  [
    'url-query',
    'The query stays byte for byte.',
    "https://buyer.example/hooks?b=%7e&a='x'&a=../%2f",
    "https://buyer.example/hooks?b=%7e&a='x'&a=../%2f",
    'buyer.example',
  ],
  [
    'url-empty-query',
    'An empty query stays a question mark.',
    'https://buyer.example/hooks?',
    'https://buyer.example/hooks?',
    'buyer.example',
  ],
  [
    'url-userinfo-fragment',
    'Userinfo and fragment are no part of it.',
    'https://user:secret@buyer.example/hooks?x=1#part',
    'https://buyer.example/hooks?x=1',
    'buyer.example',
  ],
  [
    'url-idn',
    'A host that is not ASCII becomes A-labels (UTS-46, non-transitional).',
    'https://BÜCHER.faß.example/hooks',
    'https://xn--bcher-kva.xn--fa-hia.example/hooks',
    'xn--bcher-kva.xn--fa-hia.example',
  ],
  [
    'url-ipv6',
    'IPv6 keeps its brackets and is in lower case.',
    'https://[2001:DB8::A]:8443/hooks',
    'https://[2001:db8::a]:8443/hooks',
    '[2001:db8::a]:8443',
  ],
  [
    'url-root-dot',
    'One root dot is removed.',
    'https://buyer.example./hooks',
    'https://buyer.example/hooks',
    'buyer.example',
  ],
];

const ENCODINGS: readonly Case[] = [
  {
    name: 'base64url-unpadded',
    description: 'Signature and digest in unpadded base64url, as the profile says.',
    signed: signWithBoth('base64url-unpadded'),
  },
  {
    name: 'base64url-padded',
    description: 'Signature and digest in padded base64url.',
    signed: signWithBoth('base64url-padded', { alphabet: 'base64url-padded' }),
  },
  {
    name: 'base64-padded',
    description: 'Signature and digest in padded standard base64, as many senders write it.',
    signed: signWithBoth('base64-padded', { alphabet: 'base64' }),
  },
  {
    name: 'base64-unpadded',
    description: 'Signature and digest in standard base64 without padding.',
    signed: signWithBoth('base64-unpadded', { alphabet: 'base64-unpadded' }),
  },
  {
    name: 'p256-base64-padded',
    description: 'ECDSA in padded standard base64.',
    signing: { key: KEYS.p256 },
    signed: signWithBoth('p256-base64-padded', { key: KEYS.p256, alphabet: 'base64' }),
  },
];

const WINDOW: readonly Case[] = [
  {
    name: 'window-longest',
    description: 'expires is exactly 300 s after created.',
    signing: { params: { created: String(NOW - 100), expires: String(NOW + 200) } },
  },
  {
    name: 'window-shortest',
    description: 'expires is 1 s after created.',
    signing: { params: { expires: String(NOW + 1) } },
  },
  {
    name: 'window-created-ahead',
    description: 'created is exactly 60 s ahead of the receiver.',
    signing: { params: { created: String(NOW + 60), expires: String(NOW + 360) } },
  },
  {
    name: 'window-expired-within-skew',
    description: 'expires is exactly 60 s behind the receiver.',
    signing: { params: { created: String(NOW - 360), expires: String(NOW - 60) } },
  },
];

const FIELDS: readonly Case[] = [
  {
    name: 'components-other-order',
    description: 'The covered components in another order: the base has theirs.',
    signing: { components: COMPONENTS.toReversed() },
  },
  {
    name: 'components-additional-field',
    description: 'An additional plain field is covered.',
    signing: { components: [...COMPONENTS, 'x-trace-id'], headers: { 'X-Trace-Id': ' trace 42 ' } },
  },
  {
    name: 'components-repeated-field',
    description: 'An additional field of two lines, joined by a comma and a space.',
    signing: { components: [...COMPONENTS, 'x-trace-id'], headers: { 'X-Trace-Id': ['one', 'two'] } },
  },
  {
    name: 'components-additional-derived',
    description: 'Every derived component of the profile is covered.',
    signing: {
      components: [...COMPONENTS, '@scheme', '@path', '@query', '@request-target'],
      url: 'https://buyer.example/hooks?x=1',
      targetUri: 'https://buyer.example/hooks?x=1',
    },
  },
  {
    name: 'components-absent-query',
    description: '@query of a URL without one is a lone question mark.',
    signing: { components: [...COMPONENTS, '@query'] },
  },
  {
    name: 'parameters-other-order',
    description: 'The parameters in another order: the base has theirs.',
    signing: { paramOrder: ['tag', 'keyid', 'alg', 'nonce', 'expires', 'created'] },
  },
  {
    name: 'labels-sig2-ignored',
    description: 'A second label is there and is not looked at.',
    signing: {
      sent: (headers) => ({
        ...headers,
        'Signature-Input': `sig2=("@method");created=1;alg="none", ${String(headers['Signature-Input'])}`,
        Signature: `${String(headers['Signature'])}, sig2=:AAAA:`,
      }),
    },
  },
  {
    name: 'labels-on-two-lines',
    description: 'The labels stand on header lines of their own.',
    signing: {
      sent: (headers) => ({
        ...headers,
        'Signature-Input': ['sig2=("@method")', String(headers['Signature-Input'])],
        Signature: ['sig2=:AAAA:', String(headers['Signature'])],
      }),
    },
  },
  {
    name: 'header-names-in-any-case',
    description: 'Field names in upper case.',
    signing: {
      sent: (headers) =>
        Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])),
    },
  },
  {
    name: 'content-type-charset',
    description: 'charset=utf-8 beside the media type, in any case.',
    signing: { headers: { 'Content-Type': 'Application/JSON; Charset="UTF-8"' } },
  },
  {
    name: 'digest-sha-512-beside',
    description: 'A sha-512 member beside sha-256 is ignored, even where it is wrong.',
    signing: {
      body: JSON.stringify(envelope('digest-sha-512-beside')),
      headers: {
        'Content-Digest': `sha-512=${byteSequence(sha512('another body'), 'base64')}, sha-256=${byteSequence(sha256(JSON.stringify(envelope('digest-sha-512-beside'))))}`,
      },
    },
  },
  {
    name: 'nonce-16-bytes',
    description: 'A nonce of 16 bytes, the shortest.',
    signing: { params: { nonce: `"${nonceOf('nonce-16-bytes')}"` } },
  },
  {
    name: 'nonce-32-bytes',
    description: 'A longer nonce.',
    signing: { params: { nonce: `"${encode(sha256('nonce-32-bytes'))}"` } },
  },
  {
    name: 'stray-authorization',
    description: 'An Authorization header beside the signature is ignored.',
    signing: { headers: { Authorization: 'Bearer a-token-that-a-gateway-added-to-it' } },
  },
];

const HOSTS: readonly Case[] = [
  {
    name: 'host-equal',
    description: 'Host names the authority of the URL.',
    signing: { headers: { Host: 'buyer.example' } },
  },
  {
    name: 'host-other-spelling',
    description: 'Host in upper case with the default port names it too.',
    signing: { headers: { Host: 'BUYER.example:443' } },
  },
  {
    name: 'authority-pseudo-header',
    description: ':authority of HTTP/2 names it.',
    signing: { headers: { ':authority': 'buyer.example' } },
  },
  {
    name: 'forwarded-host-ignored',
    description: 'X-Forwarded-Host says another, and is never looked at.',
    signing: { headers: { 'X-Forwarded-Host': 'evil.example' } },
  },
];

const BODIES: readonly Case[] = [
  {
    name: 'body-not-an-envelope',
    description: 'The body is JSON and no envelope: authentication is not concerned.',
    signing: { body: '{"any":"thing"}' },
  },
  {
    name: 'body-white-space',
    description: 'The bytes are signed as they are, white space too.',
    signing: { body: ` {\n\t"idempotency_key" : "evt_white_space_0001",\r\n "a":[1, 2] } ` },
  },
  {
    name: 'body-unicode',
    description: 'UTF-8 in the body, raw and escaped.',
    signing: { body: '{"message":"Größe \\u00fc 広告 \u{1F4E3} \\ud83d\\udce3"}' },
  },
  {
    name: 'body-equal-keys-apart',
    description: 'One name in two objects, or as a value, is no duplicate key.',
    signing: { body: '{"a":{"b":1},"b":{"a":["a","b",{"a":"a"}]}}' },
  },
  {
    name: 'body-proto-member',
    description: 'A member __proto__ is a member like any other.',
    signing: { body: '{"__proto__":{"admin":true},"constructor":1}' },
  },
];

const shared = testKey('ed25519', 'webhook-signing', 'shared-kid');
const impostor = testKey('ed25519', 'webhook-signing', 'shared-kid of another seller');

const KEY_CASES: readonly Case[] = [
  {
    name: 'request-key-edition-3.1',
    description: 'A request-signing key is accepted in edition 3.1.',
    signing: { key: KEYS.request },
    more: { edition: '3.1' },
  },
  {
    name: 'request-key-edition-3.2',
    description: 'A request-signing key is accepted in edition 3.2.',
    signing: { key: KEYS.requestP256 },
    more: { edition: '3.2' },
  },
  {
    name: 'key-override',
    description: 'The key is one of the vector’s own.',
    signing: { key: shared },
    more: { jwks_override: { 'shared-kid': shared.jwk } },
  },
  {
    name: 'key-private-members-ignored',
    description: 'A JWK with its private part is used like its public part.',
    more: { jwks_override: { [KEYS.ed25519.kid]: { ...KEYS.ed25519.jwk, d: KEYS.ed25519.secret } } },
  },
  {
    name: 'kid-collision-second-sender',
    description: 'Two senders of one URL publish the same kid: the one whose key verifies is the sender.',
    signing: { key: shared },
    more: {
      senders: [
        {
          agent_url: OTHER_AGENT,
          jwks_ref: [],
          jwks_override: { 'shared-kid': { ...impostor.jwk, kid: 'shared-kid' } },
        },
        { agent_url: AGENT, jwks_ref: [], jwks_override: { 'shared-kid': shared.jwk } },
      ],
    },
    sender: AGENT,
  },
  {
    name: 'kid-collision-unusable-key',
    description: 'The other sender’s key under the kid is not usable, and does not block this one.',
    signing: { key: shared },
    more: {
      senders: [
        {
          agent_url: OTHER_AGENT,
          jwks_ref: [],
          jwks_override: { 'shared-kid': { kty: 'oct', kid: 'shared-kid', k: 'AAAA' } },
        },
        { agent_url: AGENT, jwks_ref: [], jwks_override: { 'shared-kid': shared.jwk } },
      ],
    },
    sender: AGENT,
  },
];

const HARNESS: readonly Case[] = [
  {
    name: 'other-kid-revoked',
    description: 'Another key id is on the revocation list.',
    more: { test_harness_state: { revoked_kids: [KEYS.second.kid] } },
  },
  {
    name: 'nonce-used-with-other-kid',
    description: 'The nonce was seen with another key id.',
    more: {
      test_harness_state: {
        replay_cache_entries: [{ keyid: KEYS.second.kid, nonce: nonceOf('nonce-used-with-other-kid') }],
      },
    },
  },
  {
    name: 'other-kid-at-cap',
    description: 'Another key id’s cap of nonces is reached.',
    more: { test_harness_state: { per_keyid_cap_filled_for: KEYS.second.kid } },
  },
];

export const POSITIVE: readonly Case[] = [
  {
    name: 'basic-ed25519',
    description: 'The profile as it stands: five components, six parameters, Ed25519.',
  },
  {
    name: 'basic-p256',
    description: 'The same with ECDSA P-256 and SHA-256, r‖s.',
    signing: { key: KEYS.p256 },
  },
  ...ENCODINGS,
  ...WINDOW,
  ...FIELDS,
  ...HOSTS,
  ...URLS.map(([name, description, url, targetUri, authority]) => ({
    name,
    description,
    signing: { url, targetUri, authority },
  })),
  ...BODIES,
  ...KEY_CASES,
  ...HARNESS,
];

/** The file of a case that must succeed. */
export function positiveVector({
  name,
  description,
  signing,
  signed = sign(name, signing),
  more,
  sender,
}: Case): Json {
  return {
    name,
    description,
    reference_now: NOW,
    request: signed.request,
    jwks_ref: jwksRef(signing),
    ...more,
    expected_signature_base: signed.base,
    expected_outcome: { success: true, ...(sender !== undefined && { sender }) },
  };
}
