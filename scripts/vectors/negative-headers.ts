import { encode, KEYS, nonceOf, NOW, sha256, sha512 } from './kit.ts';
import type { Case } from './positive.ts';
import { byteSequence, COMPONENTS, type HeaderValue, type Signing, signWithBoth } from './sign.ts';

/** A case that must be refused. */
export interface Refused extends Case {
  readonly code: string;
  readonly check?: number | string;
  /** 401 by default. */
  readonly status?: number;
  /** `Signature error="<code>"` by default where the status is 401. */
  readonly challenge?: string | null;
  /** The verifier gets as far as the base. */
  readonly base?: boolean;
}

type Headers = Record<string, HeaderValue>;

/** A header of the finished delivery, rewritten as text. */
const rewritten =
  (name: string, change: (value: string) => HeaderValue): NonNullable<Signing['sent']> =>
  (headers) => ({ ...headers, [name]: change(String(headers[name])) });

const dropped =
  (...names: readonly string[]): NonNullable<Signing['sent']> =>
  (headers: Headers) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

const malformed = (name: string, description: string, signing: Signing): Refused => ({
  name,
  description,
  signing,
  code: 'webhook_signature_header_malformed',
  check: 1,
});

const parameter = (param: string, value: string): Signing => ({ params: { [param]: value } });

const PRESENCE: readonly Refused[] = [
  malformed('unsigned', 'Neither Signature-Input nor Signature.', {
    sent: dropped('Signature', 'Signature-Input'),
  }),
  malformed('signature-absent', 'Signature-Input without Signature.', { sent: dropped('Signature') }),
  malformed('signature-input-absent', 'Signature without Signature-Input.', {
    sent: dropped('Signature-Input'),
  }),
  malformed('signature-input-empty', 'An empty Signature-Input.', {
    sent: rewritten('Signature-Input', () => ''),
  }),
  malformed('signature-input-no-dictionary', 'Signature-Input is no dictionary.', {
    sent: rewritten('Signature-Input', () => '!!not a dictionary!!'),
  }),
  malformed('signature-input-no-inner-list', 'sig1 is a string, not an inner list.', {
    sent: rewritten('Signature-Input', () => 'sig1="@method"'),
  }),
  malformed('signature-input-boolean', 'sig1 is a lone key, which is true.', {
    sent: rewritten('Signature-Input', () => 'sig1'),
  }),
  malformed('signature-input-other-member', 'Another member is no inner list.', {
    sent: rewritten('Signature-Input', (value) => `${value}, sig2=1`),
  }),
  malformed('signature-input-list-not-closed', 'The inner list does not end.', {
    sent: rewritten('Signature-Input', (value) => value.replace(')', '')),
  }),
  malformed('signature-input-string-not-closed', 'A string does not end.', {
    sent: rewritten('Signature-Input', (value) => value.slice(0, -1)),
  }),
  malformed('signature-input-trailing-comma', 'A comma at the end.', {
    sent: rewritten('Signature-Input', (value) => `${value},`),
  }),
  malformed('label-absent', 'The labels are sig2 only.', {
    sent: (headers) => ({
      ...headers,
      'Signature-Input': String(headers['Signature-Input']).replace('sig1', 'sig2'),
      Signature: String(headers['Signature']).replace('sig1', 'sig2'),
    }),
  }),
  malformed('label-absent-from-signature', 'Signature lacks the label of Signature-Input.', {
    sent: rewritten('Signature', (value) => value.replace('sig1', 'sig2')),
  }),
  malformed('label-twice-in-signature-input', 'The label sig1 twice in Signature-Input.', {
    sent: rewritten('Signature-Input', (value) => `${value}, ${value}`),
  }),
  malformed('label-twice-on-two-lines', 'The label sig1 on two lines of Signature-Input.', {
    sent: rewritten('Signature-Input', (value) => [value, value]),
  }),
  malformed('label-twice-in-signature', 'The label sig1 twice in Signature.', {
    sent: rewritten('Signature', (value) => `${value}, ${value}`),
  }),
  malformed('component-no-string', 'A covered component is a token.', {
    sent: rewritten('Signature-Input', (value) => value.replace('"@method"', 'method')),
  }),
];

const PARAMETERS: readonly Refused[] = [
  malformed('created-string', 'created is a string.', parameter('created', `"${NOW}"`)),
  malformed('created-decimal', 'created is a decimal.', parameter('created', `${NOW}.0`)),
  malformed('created-boolean', 'created has no value, which is true.', {
    sent: rewritten('Signature-Input', (value) => value.replace(`created=${NOW}`, 'created')),
  }),
  malformed(
    'created-16-digits',
    'created has more digits than an integer has.',
    parameter('created', `${NOW}000000`),
  ),
  malformed('expires-string', 'expires is a string.', parameter('expires', `"${NOW + 300}"`)),
  malformed('expires-decimal', 'expires is a decimal.', parameter('expires', `${NOW + 300}.5`)),
  malformed(
    'nonce-bytes',
    'nonce is a byte sequence.',
    parameter('nonce', byteSequence(sha256('nonce-bytes'))),
  ),
  malformed('keyid-integer', 'keyid is an integer.', parameter('keyid', '1')),
  malformed('keyid-token', 'keyid is a token.', parameter('keyid', KEYS.ed25519.kid)),
  malformed('alg-token', 'alg is a token.', parameter('alg', 'ed25519')),
  malformed('tag-token', 'tag is a token.', parameter('tag', 'proto/webhook-signing/v1')),
  malformed('created-twice', 'created stands twice.', {
    sent: rewritten('Signature-Input', (value) => `${value};created=${NOW}`),
  }),
  malformed('keyid-twice', 'keyid stands twice, with another value.', {
    sent: rewritten('Signature-Input', (value) => `${value};keyid="${KEYS.second.kid}"`),
  }),
  malformed('tag-twice', 'tag stands twice.', {
    sent: rewritten('Signature-Input', (value) => `${value};tag="proto/webhook-signing/v1"`),
  }),
];

/** Spoils the byte sequence between the colons. */
const bytes = (change: (base64: string) => string) => (value: string) =>
  value.replace(/:([^:]*):/, (_, base64: string) => `:${change(base64)}:`);
const mixed = (base64: string): string => base64.replaceAll('+', '-');
/** 64 bytes end in a digit of 2 bits, 32 bytes in one of 4: the bits below must be 0. */
const stray = (base64: string): string =>
  `${base64.slice(0, -1)}${'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.charAt('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.indexOf(base64.slice(-1)) + 1)}`;

const BYTES: readonly Refused[] = [
  {
    ...malformed('signature-mixed-alphabets', 'The signature mixes both alphabets.', {}),
    signed: signWithBoth('signature-mixed-alphabets', {
      alphabet: 'base64',
      sent: rewritten('Signature', bytes(mixed)),
    }),
  },
  {
    ...malformed('digest-mixed-alphabets', 'The digest mixes both alphabets.', {}),
    signed: signWithBoth('digest-mixed-alphabets', {
      alphabet: 'base64',
      sent: rewritten('Content-Digest', bytes(mixed)),
    }),
  },
  malformed('signature-inner-padding', 'Padding inside the signature.', {
    sent: rewritten(
      'Signature',
      bytes((text) => `${text.slice(0, 8)}==${text.slice(8)}`),
    ),
  }),
  malformed('signature-wrong-padding', 'One padding character where two belong.', {
    sent: rewritten(
      'Signature',
      bytes((text) => `${text}=`),
    ),
  }),
  malformed('signature-stray-bits', 'The last digit of the signature has stray bits.', {
    sent: rewritten('Signature', bytes(stray)),
  }),
  malformed('signature-other-characters', 'A character of neither alphabet.', {
    sent: rewritten(
      'Signature',
      bytes((text) => `${text.slice(0, 4)}!${text.slice(5)}`),
    ),
  }),
  malformed('signature-white-space', 'A space inside the signature.', {
    sent: rewritten(
      'Signature',
      bytes((text) => `${text.slice(0, 4)} ${text.slice(4)}`),
    ),
  }),
  malformed('signature-string', 'The signature is a string.', {
    sent: rewritten('Signature', (value) => value.replaceAll(':', '"')),
  }),
  malformed('signature-latin-1', 'A byte that is not ASCII.', {
    sent: rewritten('Signature', (value) => value.replace('sig1=:', 'sig1=:\u00e9')),
  }),
  malformed('signature-other-member', 'Another member of Signature is no byte sequence.', {
    sent: rewritten('Signature', (value) => `${value}, sig2=1`),
  }),
  malformed('digest-stray-bits', 'The last digit of the digest has stray bits.', {
    sent: rewritten('Content-Digest', bytes(stray)),
  }),
  malformed('digest-no-dictionary', 'Content-Digest is no dictionary.', {
    headers: { 'Content-Digest': encode(sha256('')) },
  }),
  malformed('digest-31-bytes', 'The sha-256 member has 31 bytes.', {
    headers: { 'Content-Digest': `sha-256=${byteSequence(sha256('').subarray(0, 31))}` },
  }),
  malformed('digest-64-bytes', 'The sha-256 member has 64 bytes.', {
    headers: { 'Content-Digest': `sha-256=${byteSequence(sha512(''))}` },
  }),
  malformed('digest-hexadecimal', 'The sha-256 member is a string of hexadecimal digits.', {
    headers: { 'Content-Digest': `sha-256="${Buffer.from(sha256('')).toString('hex')}"` },
  }),
  malformed('digest-member-twice', 'The sha-256 member twice.', {
    sent: rewritten('Content-Digest', (value) => `${value}, ${value}`),
  }),
  malformed('digest-on-two-lines', 'Content-Digest on two lines.', {
    sent: rewritten('Content-Digest', (value) => [value, value]),
  }),
];

const missing = (param: string): Refused => ({
  name: `parameter-absent-${param}`,
  description: `The parameter ${param} is absent.`,
  signing: { params: { [param]: undefined } },
  code: 'webhook_signature_params_incomplete',
  check: 2,
});

const nonce = (name: string, description: string, value: string): Refused => ({
  ...malformed(name, description, parameter('nonce', `"${value}"`)),
  check: 2,
});

const refused =
  (check: number, code: string) =>
  (name: string, description: string, signing: Signing): Refused => ({
    name,
    description,
    signing,
    code,
    check,
  });
const tag = refused(3, 'webhook_signature_tag_invalid');
const alg = refused(4, 'webhook_signature_alg_not_allowed');
const window = refused(5, 'webhook_signature_window_invalid');
const components = refused(6, 'webhook_signature_components_incomplete');

const times = (created: number, expires: number): Signing => ({
  params: { created: String(created), expires: String(expires) },
});
const covering = (...more: readonly string[]): Signing => ({ components: [...COMPONENTS, ...more] });
const instead = (name: string, component: string): Signing => ({
  components: COMPONENTS.map((own) => (own === name ? component : own)),
});

const VALUES: readonly Refused[] = [
  ...['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'].map(missing),
  {
    ...missing('created'),
    name: 'parameters-absent-all',
    description: 'No parameter at all.',
    signing: { paramOrder: [] },
  },
  nonce('nonce-15-bytes', 'A nonce of 15 bytes.', encode(sha256('nonce-15-bytes').subarray(0, 15))),
  nonce('nonce-empty', 'An empty nonce.', ''),
  nonce('nonce-padded', 'A padded nonce.', `${nonceOf('nonce-padded')}==`),
  nonce(
    'nonce-standard-alphabet',
    'A nonce in the standard alphabet.',
    `${nonceOf('nonce-standard-alphabet').slice(0, 20)}+/`,
  ),
  nonce(
    'nonce-impossible-length',
    'A nonce of a length that no base64url has.',
    nonceOf('nonce-impossible-length').padEnd(25, 'A'),
  ),
  tag('tag-of-requests', 'The tag of request signatures.', parameter('tag', '"proto/request-signing/v1"')),
  tag('tag-other-version', 'The tag of another version.', parameter('tag', '"proto/webhook-signing/v2"')),
  tag(
    'tag-upper-case',
    'The tag in upper case: it is compared byte for byte.',
    parameter('tag', '"PROTO/webhook-signing/v1"'),
  ),
  tag('tag-empty', 'An empty tag.', parameter('tag', '""')),
  alg('alg-rsa', 'An algorithm of RFC 9421 that the profile lacks.', parameter('alg', '"rsa-pss-sha512"')),
  alg('alg-hmac', 'A symmetric algorithm.', parameter('alg', '"hmac-sha256"')),
  alg('alg-p384', 'ECDSA P-384.', parameter('alg', '"ecdsa-p384-sha384"')),
  alg('alg-upper-case', 'ed25519 in other case.', parameter('alg', '"Ed25519"')),
  alg('alg-jose-name', 'The name that JOSE has for it.', parameter('alg', '"EdDSA"')),
  alg('alg-none', 'No algorithm.', parameter('alg', '"none"')),
  window('window-equal', 'expires equals created.', times(NOW, NOW)),
  window('window-backwards', 'expires is before created.', times(NOW, NOW - 1)),
  window('window-too-long', 'expires is 301 s after created.', times(NOW - 100, NOW + 201)),
  window('window-created-too-far-ahead', 'created is 61 s ahead.', times(NOW + 61, NOW + 300)),
  window('window-expired', 'expires is 61 s behind.', times(NOW - 300, NOW - 61)),
  window('window-milliseconds', 'Milliseconds for seconds.', times(NOW * 1000, NOW * 1000 + 300)),
  window('window-negative', 'created is negative.', times(-1, NOW + 1)),
];

const COVERED: readonly Refused[] = [
  ...COMPONENTS.map((component) =>
    components(`component-absent-${component.replace('@', '')}`, `${component} is not covered.`, {
      components: COMPONENTS.filter((own) => own !== component),
    }),
  ),
  components('components-none', 'Nothing is covered.', { components: [] }),
  components('component-twice', 'A component is covered twice.', covering('@method')),
  components(
    'component-sf',
    'content-type;sf instead of content-type.',
    instead('content-type', '"content-type";sf'),
  ),
  components(
    'component-sf-beside',
    'A component with ;sf beside the plain one.',
    covering('"content-type";sf'),
  ),
  components('component-bs', 'A component with ;bs.', covering('"content-type";bs')),
  components('component-key', 'A component with ;key.', covering('"content-digest";key="sha-256"')),
  components('component-req', 'A component with ;req.', covering('"@method";req')),
  components('component-tr', 'A component with ;tr.', covering('"content-type";tr')),
  components('component-field-absent', 'A covered field that the request lacks.', covering('x-absent')),
  components(
    'component-upper-case',
    'A field name in upper case is no component.',
    instead('content-type', '"Content-Type"'),
  ),
  components('component-status', '@status, which no request has.', covering('@status')),
  components('component-query-param', '@query-param;name.', covering('"@query-param";name="a"')),
  components('component-unknown-derived', 'A derived component that does not exist.', covering('@body')),
  components('digest-absent', 'Content-Digest is covered and absent.', { sent: dropped('Content-Digest') }),
];

/** What a guard decides before signatures are looked at (verification.md §7.23, §7.24, §7.26, §7.28). */
const guarded =
  (status: number, code: string) =>
  (name: string, description: string, signing: Signing): Refused => ({
    name,
    description,
    signing,
    code,
    status,
    challenge: null,
  });
const media = guarded(415, 'unsupported_media_type');
const encoding = guarded(415, 'unsupported_content_encoding');
const method = guarded(405, 'method_not_allowed');

/** Parameters in front of the others, so that what they hide stands behind them. */
const before = (parameters: string): Signing => ({
  sent: rewritten('Signature-Input', (value) => value.replace(')', `)${parameters}`)),
});

/** What RFC 9651 added to RFC 8941, by which the dictionaries are read. */
export const NEGATIVE_ITEMS: readonly Refused[] = [
  malformed('parameter-date', 'A parameter is a date.', before(';x=@1')),
  malformed('parameter-display-string', 'A parameter is a display string.', before(';x=%"a"')),
  malformed(
    'created-twice-behind-display-string',
    'created stands twice, hidden from a reader who takes a display string for a string with escapes.',
    before(`;x=%"\\";created=1;y="\\""`),
  ),
];

const GUARD: readonly Refused[] = [
  media('content-type-text', 'Content-Type is text/plain.', { headers: { 'Content-Type': 'text/plain' } }),
  media('content-type-json-suffix', 'A +json type is another type.', {
    headers: { 'Content-Type': 'application/problem+json' },
  }),
  media('content-type-absent', 'No Content-Type.', { sent: dropped('Content-Type') }),
  media('content-type-twice', 'Content-Type on two lines.', {
    headers: { 'Content-Type': ['application/json', 'application/json'] },
  }),
  media('content-type-other-charset', 'A charset other than utf-8.', {
    headers: { 'Content-Type': 'application/json; charset=iso-8859-1' },
  }),
  encoding('content-encoding-gzip', 'Content-Encoding is gzip.', { headers: { 'Content-Encoding': 'gzip' } }),
  method('method-get', 'The method is GET, and signed so.', { method: 'GET' }),
  method('method-put', 'The method is PUT, and signed so.', { method: 'PUT' }),
];

export const NEGATIVE_HEADERS: readonly Refused[] = [
  ...PRESENCE,
  ...PARAMETERS,
  ...BYTES,
  ...VALUES,
  ...COVERED,
  ...GUARD,
];
