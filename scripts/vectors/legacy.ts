import { createHmac } from 'node:crypto';
import { type Json, NOW } from './kit.ts';
import { envelope } from './sign.ts';

const SECRET = 'current-secret-of-the-test-vectors-0001';
const PREVIOUS = 'previous-secret-of-the-test-vectors-0001';

const mac = (secret: string, timestamp: string, body: string | Uint8Array): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`;

const body = (name: string): string => JSON.stringify(envelope(name));
const GOOD = { status: 200, code: null, handled: true };
const refused = (code: string): Json => ({
  status: 401,
  code,
  www_authenticate: `Signature error="${code}"`,
  handled: false,
});

interface Hmac {
  readonly id: string;
  readonly body?: string | Uint8Array;
  readonly timestamp?: string | number;
  /** Of the receiver; that of the timestamp by default. */
  readonly now?: number;
  readonly secret?: string;
  readonly headers?: Json;
  readonly expected?: Json;
  readonly action?: string;
}

/** Check 14: the sender is proved, its body is none. */
const REJECTED = { action: 'reject-malformed', expected: refused('webhook_body_malformed') };

/** The bytes are what counts, whatever JSON they are. */
const BYTES: readonly Hmac[] = [
  { id: 'compact' },
  { id: 'white-space', body: '{ "a" : [ 1, 2 ] }', action: 'accept' },
  { id: 'unicode-raw', body: '{"message":"Größe 広告 \u{1F4E3}"}', action: 'accept' },
  { id: 'unicode-escaped', body: '{"message":"Gr\\u00f6\\u00dfe \\ud83d\\udce3"}', action: 'accept' },
  { id: 'escaped-slash', body: '{"url":"https:\\/\\/seller.example\\/"}', action: 'accept' },
  { id: 'numbers-as-written', body: '{"a":1.0,"b":1e2,"c":-0}', action: 'accept' },
  { id: 'member-order', body: '{"b":1,"a":2}', action: 'accept' },
  { id: 'trailing-line-feed', body: '{"a":1}\n', action: 'accept' },
  { id: 'empty-object', body: '{}', action: 'accept' },
  { id: 'timestamp-as-text', timestamp: String(NOW) },
  { id: 'duplicate-key', body: '{"a":1,"a":2}', ...REJECTED },
  { id: 'duplicate-key-escaped', body: '{"a":1,"\\u0061":2}', ...REJECTED },
  { id: 'empty-body', body: '', ...REJECTED },
];

type Described = Hmac & { readonly description?: string };

/** Cases of one header: its value in place of the right one, and what that is refused with. */
const ofHeader =
  (header: string) =>
  (id: string, description: string, value: unknown, code: string): Described => ({
    id,
    description,
    headers: { [header]: value },
    expected: refused(code),
  });
const signature = ofHeader('X-PROTO-Signature');
const timestamp = ofHeader('X-PROTO-Timestamp');

const right = (id: string): string => mac(SECRET, String(NOW), body(id));
const malformed = 'webhook_signature_header_malformed';
const invalid = 'webhook_signature_invalid';

const RULES: readonly Described[] = [
  { id: 'skew-300-behind', now: NOW + 300, expected: GOOD },
  { id: 'skew-300-ahead', now: NOW - 300, expected: GOOD },
  { id: 'skew-301-behind', now: NOW + 301, expected: refused('webhook_signature_window_invalid') },
  { id: 'skew-301-ahead', now: NOW - 301, expected: refused('webhook_signature_window_invalid') },
  { id: 'previous-secret', secret: PREVIOUS, expected: GOOD },
  { id: 'another-secret', secret: 'another-secret-of-the-test-vectors-0001', expected: refused(invalid) },
  signature('signature-absent', 'No signature header.', null, malformed),
  signature('signature-empty', 'An empty signature header.', '', malformed),
  signature(
    'signature-twice',
    'The right signature on two lines.',
    [right('signature-twice'), right('signature-twice')],
    malformed,
  ),
  signature(
    'signature-without-prefix',
    'The digest without sha256=.',
    right('signature-without-prefix').slice(7),
    invalid,
  ),
  signature(
    'signature-upper-case',
    'Upper-case hexadecimal digits.',
    `sha256=${right('signature-upper-case').slice(7).toUpperCase()}`,
    invalid,
  ),
  signature(
    'signature-truncated',
    'One digit less: the lengths differ.',
    right('signature-truncated').slice(0, -1),
    invalid,
  ),
  signature(
    'signature-base64',
    'The digest in base64.',
    `sha256=${Buffer.from(right('signature-base64').slice(7), 'hex').toString('base64')}`,
    invalid,
  ),
  signature(
    'signature-over-body-alone',
    'The digest over the body without its timestamp.',
    `sha256=${createHmac('sha256', SECRET).update(body('signature-over-body-alone')).digest('hex')}`,
    invalid,
  ),
  signature(
    'signature-of-another-time',
    'The digest for another timestamp.',
    mac(SECRET, String(NOW - 1), body('signature-of-another-time')),
    invalid,
  ),
  signature(
    'signature-of-another-body',
    'The digest of the body serialised otherwise.',
    mac(SECRET, String(NOW), JSON.stringify(envelope('signature-of-another-body'), null, 1)),
    invalid,
  ),
  timestamp('timestamp-absent', 'No timestamp header.', null, malformed),
  timestamp('timestamp-decimal', 'A decimal timestamp.', `${NOW}.0`, malformed),
  timestamp('timestamp-negative', 'A negative timestamp.', `-${NOW}`, malformed),
  timestamp('timestamp-date', 'A date.', '2026-09-21T14:13:20Z', malformed),
  timestamp('timestamp-trailing-text', 'Digits and something else.', `${NOW}s`, malformed),
  timestamp('timestamp-milliseconds', 'Milliseconds.', `${NOW}000`, 'webhook_signature_window_invalid'),
  {
    id: 'stray-authorization',
    description: 'An Authorization header beside the scheme’s own is ignored.',
    headers: { Authorization: 'Bearer a-token-that-a-gateway-added-to-it' },
    expected: GOOD,
  },
  {
    id: 'mode-signature',
    description: 'RFC 9421 headers at a sender registered with HMAC.',
    headers: { 'Signature-Input': 'sig1=()', Signature: 'sig1=:AAAA:' },
    expected: refused('webhook_mode_mismatch'),
  },
];

function hmacVector({ id, now, action, expected, headers, secret = SECRET, ...rest }: Hmac): Json {
  const { body: given = body(id), timestamp: at = NOW, ...more } = rest;
  return {
    id,
    ...more,
    timestamp: at,
    ...(now !== undefined && { reference_now: now }),
    raw_body: given,
    expected_signature: mac(secret, String(at), given),
    ...(headers && { headers }),
    ...(action !== undefined && { expected_verifier_action: action }),
    ...(expected && { expected }),
  };
}

/** `hmac.json`. */
export function hmac(): Json {
  return {
    description:
      'Legacy HMAC-SHA256: expected_signature is that of the bytes; headers stand for those that it would make, null takes one away.',
    secret: SECRET,
    previous_secret: PREVIOUS,
    vectors: [...BYTES, ...RULES].map(hmacVector),
  };
}

const challenged = (code: string): Json => ({
  status: 401,
  code,
  www_authenticate: 'Bearer error="invalid_token"',
  handled: false,
});
const bearerCase = (
  id: string,
  description: string,
  headers: Json | undefined,
  expected: Json,
  raw?: string,
): Json => ({
  id,
  description,
  ...(headers && { headers }),
  raw_body: raw ?? body(`bearer ${id}`),
  expected,
});

/** `bearer.json`. */
export function bearer(): Json {
  const mode = 'webhook_mode_mismatch';
  return {
    description:
      'Legacy bearer tokens. A missing or wrong token has a Bearer challenge, never a Signature one.',
    token: SECRET,
    previous_token: PREVIOUS,
    vectors: [
      bearerCase('token', 'The registered token.', undefined, GOOD),
      bearerCase(
        'previous-token',
        'The previous token, during a rotation.',
        { Authorization: `Bearer ${PREVIOUS}` },
        GOOD,
      ),
      bearerCase(
        'scheme-in-lower-case',
        'The scheme’s name in any case.',
        { Authorization: `bearer ${SECRET}` },
        GOOD,
      ),
      bearerCase('absent', 'No Authorization header.', { Authorization: null }, challenged(malformed)),
      bearerCase('empty', 'An empty Authorization header.', { Authorization: '' }, challenged(malformed)),
      bearerCase(
        'basic',
        'Another scheme.',
        { Authorization: `Basic ${Buffer.from('a:b').toString('base64')}` },
        challenged(malformed),
      ),
      bearerCase(
        'token-alone',
        'The token without its scheme.',
        { Authorization: SECRET },
        challenged(malformed),
      ),
      bearerCase(
        'twice',
        'The header on two lines.',
        { Authorization: [`Bearer ${SECRET}`, `Bearer ${SECRET}`] },
        challenged(malformed),
      ),
      bearerCase(
        'wrong',
        'Another token.',
        { Authorization: 'Bearer another-token-of-the-test-vectors-0001' },
        challenged(invalid),
      ),
      bearerCase(
        'prefix',
        'The beginning of the token.',
        { Authorization: `Bearer ${SECRET.slice(0, -1)}` },
        challenged(invalid),
      ),
      bearerCase(
        'longer',
        'The token and one character more.',
        { Authorization: `Bearer ${SECRET}1` },
        challenged(invalid),
      ),
      bearerCase(
        'mode-signature',
        'RFC 9421 headers at a sender registered with a token.',
        { 'Signature-Input': 'sig1=()', Signature: 'sig1=:AAAA:' },
        refused(mode),
      ),
      bearerCase(
        'mode-hmac',
        'HMAC headers at a sender registered with a token.',
        { 'X-PROTO-Signature': right('mode-hmac'), 'X-PROTO-Timestamp': String(NOW) },
        refused(mode),
      ),
      bearerCase(
        'duplicate-key',
        'Check 14 runs here too.',
        undefined,
        refused('webhook_body_malformed'),
        '{"a":1,"a":2}',
      ),
      bearerCase(
        'no-envelope',
        'Authentic, and no envelope.',
        undefined,
        { status: 400, code: 'missing_idempotency_key', www_authenticate: null, handled: false },
        '{}',
      ),
    ],
  };
}
