// Rows of the table of wrong deliveries for check 1: signature headers that are malformed, or of which one is missing.
// The rows stand in the order of the conformance test cases. The table in mistakes.ts takes them.
import {
  bytes,
  detail,
  narrow,
  refusedBy,
  rewritten,
  dropped,
  type Altered,
  type Rows,
} from './mistake-row.ts';

const field = refusedBy(1, 'webhook_signature_header_malformed', 'signature');
const parameter = refusedBy(1, 'webhook_signature_header_malformed', 'parameters');
const digest = refusedBy(1, 'webhook_signature_header_malformed', 'digest');

const input = (change: (value: string) => string): Altered => ({
  sent: rewritten('Signature-Input', change),
});
const signature = (change: (value: string) => string): Altered => ({ sent: rewritten('Signature', change) });

export const PRESENCE: Rows = {
  unsigned: field('Neither Signature-Input nor Signature.', {
    sent: dropped('Signature', 'Signature-Input'),
  }),
  'signature-absent': detail(field('Signature-Input without Signature.', { sent: dropped('Signature') })),
  'signature-input-absent': field('Signature without Signature-Input.', { sent: dropped('Signature-Input') }),
  'signature-input-empty': detail(
    field(
      'An empty Signature-Input.',
      input(() => ''),
    ),
  ),
  'signature-input-no-dictionary': detail(
    field(
      'Signature-Input is not a dictionary.',
      input(() => '!!not a dictionary!!'),
    ),
  ),
  'signature-input-no-inner-list': detail(
    field(
      'sig1 is a string, not an inner list.',
      input(() => 'sig1="@method"'),
    ),
  ),
  'signature-input-boolean': detail(
    field(
      'sig1 is a lone key, which is true.',
      input(() => 'sig1'),
    ),
  ),
  'signature-input-other-member': detail(
    field(
      'Another member is not an inner list.',
      input((value) => `${value}, sig2=1`),
    ),
  ),
  'signature-input-list-not-closed': detail(
    field(
      'The inner list does not end.',
      input((value) => value.replace(')', '')),
    ),
  ),
  'signature-input-string-not-closed': detail(
    field(
      'A string does not end.',
      input((value) => value.slice(0, -1)),
    ),
  ),
  'signature-input-trailing-comma': detail(
    field(
      'A comma at the end.',
      input((value) => `${value},`),
    ),
  ),
  'label-absent': detail(
    field('The labels are sig2 only.', {
      sent: (headers) => ({
        ...headers,
        'Signature-Input': String(headers['Signature-Input']).replace('sig1', 'sig2'),
        Signature: String(headers['Signature']).replace('sig1', 'sig2'),
      }),
    }),
  ),
  'label-absent-from-signature': detail(
    field(
      'Signature lacks the label of Signature-Input.',
      signature((value) => value.replace('sig1', 'sig2')),
    ),
  ),
  'label-twice-in-signature-input': detail(
    field(
      'The label sig1 twice in Signature-Input.',
      input((value) => `${value}, ${value}`),
    ),
  ),
  'label-twice-on-two-lines': narrow(
    field('The label sig1 on two lines of Signature-Input.', {
      sent: rewritten('Signature-Input', (value) => [value, value]),
    }),
  ),
  'label-twice-in-signature': field(
    'The label sig1 twice in Signature.',
    signature((value) => `${value}, ${value}`),
  ),
  'component-no-string': detail({
    ...field(
      'A covered component is a token.',
      input((value) => value.replace('"@method"', 'method')),
    ),
    part: 'components',
  }),
};

const text = (name: string, value: string): Altered => ({ params: { [name]: value } });
const BYTES = 'aSU0pxVwpc9AsAzcqZoNPbTCnRPdd_5odMsxUGXl3S8';

export const PARAMETER_SYNTAX: Rows = {
  'created-string': parameter('created is a string.', ({ now }) => text('created', `"${now}"`)),
  'created-decimal': detail(parameter('created is a decimal.', ({ now }) => text('created', `${now}.0`))),
  'created-boolean': detail(
    parameter(
      'created has no value, which is true.',
      input((value) => value.replace(/created=\d+/, 'created')),
    ),
  ),
  'created-16-digits': detail(
    parameter('created has more digits than an integer may have.', ({ now }) =>
      text('created', `${now}000000`),
    ),
  ),
  'expires-string': detail(parameter('expires is a string.', ({ now }) => text('expires', `"${now + 300}"`))),
  'expires-decimal': detail(
    parameter('expires is a decimal.', ({ now }) => text('expires', `${now + 300}.5`)),
  ),
  'nonce-bytes': detail(
    parameter('nonce is a byte sequence.', ({ pick }) => text('nonce', pick([`:${BYTES}:`, 'token', '1']))),
  ),
  'keyid-integer': detail(parameter('keyid is an integer.', text('keyid', '1'))),
  'keyid-token': detail(parameter('keyid is a token.', ({ keyid }) => text('keyid', keyid))),
  'alg-token': detail(parameter('alg is a token.', text('alg', 'ed25519'))),
  'tag-token': detail(
    parameter('tag is a token.', ({ protocol }) => text('tag', `${protocol}/webhook-signing/v1`)),
  ),
  'created-twice': detail(
    parameter('created occurs twice.', ({ now }) => input((value) => `${value};created=${now}`)),
  ),
  'keyid-twice': parameter('keyid occurs twice, with another value.', ({ keyid }) =>
    input((value) => `${value};keyid="${keyid}-2"`),
  ),
  'tag-twice': detail(
    parameter('tag occurs twice.', ({ protocol }) =>
      input((value) => `${value};tag="${protocol}/webhook-signing/v1"`),
    ),
  ),
};

/** Mixes characters of both Base64 alphabets (`+/` and `-_`) in one text, even if the text has none of them. */
const mixed = (base64: string): string =>
  base64.includes('+') && base64.includes('/') ? base64.replaceAll('+', '-') : `+-${base64.slice(2)}`;

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Sets bits of the last Base64 digit that are unused and must be 0. After 64 bytes 4 bits of that digit are unused,
 * after 32 bytes 2 bits.
 */
const stray = (base64: string): string =>
  base64.slice(0, -1) + DIGITS.charAt(DIGITS.indexOf(base64.slice(-1)) + 1);

const EMPTY_SHA_256 = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU';
const EMPTY_SHA_512 =
  'z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg_SpIdNs6c5H0NE8XYXysP-DGNKHfuwvY7kxvUdBeoGlODJ6-SfaPg';
const EMPTY_HEX = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const claimed = (value: string): Altered => ({ headers: { 'Content-Digest': value } });

export const BYTE_SEQUENCES: Rows = {
  'signature-mixed-alphabets': detail(
    field('The signature mixes both alphabets.', { ...signature(bytes(mixed)), alphabet: 'base64' }),
  ),
  'digest-mixed-alphabets': detail(
    digest('The digest mixes both alphabets.', {
      alphabet: 'base64',
      sent: rewritten('Content-Digest', bytes(mixed)),
    }),
  ),
  'signature-inner-padding': detail(
    field('Padding inside the signature.', signature(bytes((own) => `${own.slice(0, 8)}==${own.slice(8)}`))),
  ),
  'signature-wrong-padding': detail(
    field('One padding character where two belong.', signature(bytes((own) => `${own}=`))),
  ),
  'signature-stray-bits': detail(
    field('The last digit of the signature has stray bits.', signature(bytes(stray))),
  ),
  'signature-other-characters': field(
    'A character of neither alphabet.',
    signature(bytes((own) => `${own.slice(0, 4)}!${own.slice(5)}`)),
  ),
  'signature-white-space': detail(
    field('A space inside the signature.', signature(bytes((own) => `${own.slice(0, 4)} ${own.slice(4)}`))),
  ),
  'signature-string': detail(
    field(
      'The signature is a string.',
      signature((value) => value.replaceAll(':', '"')),
    ),
  ),
  'signature-latin-1': detail(
    field(
      'A byte that is not ASCII.',
      signature((value) => value.replace('sig1=:', 'sig1=:\u00e9')),
    ),
  ),
  'signature-other-member': detail(
    field(
      'Another member of Signature is not a byte sequence.',
      signature((value) => `${value}, sig2=1`),
    ),
  ),
  'digest-stray-bits': detail(
    digest('The last digit of the digest has stray bits.', {
      sent: rewritten('Content-Digest', bytes(stray)),
    }),
  ),
  'digest-no-dictionary': detail(digest('Content-Digest is not a dictionary.', claimed(EMPTY_SHA_256))),
  'digest-31-bytes': digest(
    'The sha-256 member has 31 bytes.',
    claimed(`sha-256=:${EMPTY_SHA_256.slice(0, 41)}A:`),
  ),
  'digest-64-bytes': detail(
    digest('The sha-256 member has 64 bytes.', claimed(`sha-256=:${EMPTY_SHA_512}:`)),
  ),
  'digest-hexadecimal': detail(
    digest('The sha-256 member is a string of hexadecimal digits.', claimed(`sha-256="${EMPTY_HEX}"`)),
  ),
  'digest-member-twice': detail(
    digest('The sha-256 member twice.', {
      sent: rewritten('Content-Digest', (value) => `${value}, ${value}`),
    }),
  ),
  'digest-on-two-lines': narrow(
    digest('Content-Digest on two lines.', { sent: rewritten('Content-Digest', (value) => [value, value]) }),
  ),
};

/**
 * Puts `parameters` in front of all other parameters of the signature. A parser that misreads them misses the others.
 */
const before = (parameters: string): Altered => input((value) => value.replace(')', `)${parameters}`));

/**
 * Wrong deliveries with types of header values that only RFC 9651 has (dates, display strings). A receiver must refuse
 * them, because it has to read dictionaries by RFC 8941.
 */
export const NEWER_ITEMS: Rows = {
  'parameter-date': detail(parameter('A parameter is a date.', before(';x=@1'))),
  'parameter-display-string': detail(parameter('A parameter is a display string.', before(';x=%"a"'))),
  'created-twice-behind-display-string': detail(
    parameter(
      'created occurs twice, hidden from a parser that takes a display string for a string with escapes.',
      before(`;x=%"\\";created=1;y="\\""`),
    ),
  ),
};
