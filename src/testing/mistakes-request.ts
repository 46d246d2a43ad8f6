// Rows of the table of wrong deliveries that are refused before any signature check, or for their authentication
// scheme, or for their body (check 14). The table in mistakes.ts takes them.
import {
  type Altered,
  but,
  detail,
  dropped,
  type Headers,
  narrow,
  type MistakePart,
  refusedBy,
  type Rows,
  textOf,
  type WrongDelivery,
} from './mistake-row.ts';
import type { RefusedCode } from '../shared/codes.ts';

/**
 * Makes a helper for rows that are refused before any check of a signature (verification.md §7.23, §7.24, §7.26,
 * §7.28).
 */
const guarded =
  (status: 405 | 413 | 415, code: RefusedCode, part: MistakePart) =>
  (sends: string, made: WrongDelivery['made']): WrongDelivery => ({ sends, status, code, part, made });
const media = guarded(415, 'unsupported_media_type', 'type');
const encoding = guarded(415, 'unsupported_content_encoding', 'encoding');
const method = guarded(405, 'method_not_allowed', 'method');

const type = (value: Headers[string]): Altered => ({ headers: { 'Content-Type': value } });

export const GUARDED: Rows = {
  'text-plain': media('Content-Type is text/plain.', type('text/plain')),
  'content-type-json-suffix': detail(
    media('A +json type.', ({ pick }) => type(pick(['application/problem+json', 'application/a2a+json']))),
  ),
  'content-type-absent': media('No Content-Type.', { sent: dropped('Content-Type') }),
  'content-type-twice': narrow(
    media('Content-Type on two lines.', type(['application/json', 'application/json'])),
  ),
  'content-type-malformed': but(media('A parameter without a value.', type('application/json; x')), {
    by: ['seller', 'fuzz'],
  }),
  'content-type-other-charset': media('A charset other than utf-8.', ({ pick }) =>
    type(`application/json; charset=${pick(['iso-8859-1', 'latin1'])}`),
  ),
  'content-encoding-gzip': encoding('Content-Encoding is gzip.', ({ pick }) => ({
    headers: { 'Content-Encoding': pick(['gzip', 'br', 'identity, gzip']) },
  })),
  // HTTP clients send no body with GET, so only the fuzzer and the vectors (conformance test cases) can make this row.
  'method-get': narrow(method('The method is GET, also in the signature.', { method: 'GET' })),
  'method-put': method('The method is PUT, also in the signature.', { method: 'PUT' }),
  'method-other': but(
    method('Another method, also in the signature.', ({ pick }) => ({
      method: pick(['DELETE', 'PATCH', 'OPTIONS', 'HEAD']),
    })),
    { by: ['seller', 'fuzz'] },
  ),
  oversize: {
    ...guarded(
      413,
      'payload_too_large',
      'body',
    )('A body over maxBodyBytes.', ({ body, maxBodyBytes }) => ({
      body: textOf(body).padEnd(maxBodyBytes + 1),
    })),
    // The vectors (conformance test cases) lack this row, because the size limit differs between the receivers that run
    // them.
    by: ['probe', 'seller', 'fuzz'],
  },
};

/** Makes a row whose authentication scheme is not the one registered for the sender. */
const mode = (sends: string, made: WrongDelivery['made']): WrongDelivery => ({
  sends,
  status: 401,
  code: 'webhook_mode_mismatch',
  part: 'scheme',
  made,
});

const unsigned = (added: Headers): Altered => ({
  sent: (headers) => ({
    ...dropped('Signature', 'Signature-Input', 'Content-Digest')(headers),
    ...added,
  }),
});
const hmac = (protocol: string): Headers => ({
  [`X-${protocol.toUpperCase()}-Signature`]:
    'sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  [`X-${protocol.toUpperCase()}-Timestamp`]: '1790000000',
});

export const SCHEMES: Rows = {
  'mode-hmac-at-signature-sender': detail(
    mode('HMAC headers from a sender that signs.', ({ protocol }) => unsigned(hmac(protocol))),
  ),
  'mode-hmac-beside-signature': mode('HMAC headers beside a valid signature.', ({ protocol }) => ({
    headers: hmac(protocol),
  })),
  'mode-bearer-at-signature-sender': mode(
    'A bearer token alone from a sender that signs.',
    unsigned({ Authorization: 'Bearer a-shared-secret-of-these-test-vectors-only' }),
  ),
};

const body = refusedBy(14, 'webhook_body_malformed', 'body');
const around = (...parts: readonly [string, readonly number[], string]): Uint8Array => {
  const [start, middle, end] = parts;
  const encoder = new TextEncoder();
  return Uint8Array.from([...encoder.encode(start), ...middle, ...encoder.encode(end)]);
};

/** Repeats the first member of a JSON object, in front of itself and with the value null. */
const doubled = (text: string): string => text.replace(/\{\s*("(?:[^"\\]|\\.)*")/, '{$1:null,$1');

/** Rows of check 14: signed bodies that are no JSON object, or in which a member is repeated. */
export const BODIES: Rows = {
  'duplicate-json-key': body('A key twice at the top.', (given) => ({ body: doubled(textOf(given.body)) })),
  'body-duplicate-key-equal-values': detail(
    body('A key twice with the same value.', { body: '{"a":1,"a":1}' }),
  ),
  'body-duplicate-key-nested': detail(
    body('A key twice in a nested object.', { body: '{"result":{"a":{"b":1,"c":2,"b":3}}}' }),
  ),
  'body-duplicate-key-in-array': detail(
    body('A key twice in an object of an array.', { body: '{"result":[[1,{"a":1,"a":2}]]}' }),
  ),
  'body-duplicate-key-escaped': detail(
    body('A key twice, once escaped.', ({ pick }) => ({
      body: pick([String.raw`{"a":1,"\u0061":2}`, String.raw`{"a\\":1,"a\u005c":2}`]),
    })),
  ),
  'body-duplicate-key-escaped-nested': body('A key twice in depth, both escaped.', {
    body: String.raw`{"r":[{"\u0073pend":1,"s\u0070end":2}]}`,
  }),
  'body-duplicate-proto-key': detail(body('__proto__ twice.', { body: '{"__proto__":1,"__proto__":2}' })),
  'body-duplicate-empty-key': detail(body('The empty key twice.', { body: '{"":1,"":2}' })),
  'not-json': body('The body ends too early.', (given) => ({ body: textOf(given.body).slice(0, -1) })),
  'body-trailing-text': detail(
    body('Text after the object.', (given) => ({ body: `${textOf(given.body)}x` })),
  ),
  'body-two-objects': detail(body('Two objects.', { body: '{"a":1}{"b":2}' })),
  'body-trailing-comma': detail(body('A trailing comma.', { body: '{"a":1,}' })),
  'body-single-quotes': detail(body('Single quotes.', { body: "{'a':1}" })),
  'body-comment': detail(body('A comment.', { body: '{"a":1/* */}' })),
  'body-nan': detail(body('NaN, which is not JSON.', { body: '{"a":NaN}' })),
  'body-leading-zero': detail(body('A number with a leading zero.', { body: '{"a":01}' })),
  'body-control-character': detail(body('A raw control character in a string.', { body: '{"a":"\n"}' })),
  'body-empty': detail(body('No bytes.', { body: '' })),
  'body-array': body('An array.', { body: '[{"a":1}]' }),
  'body-string': detail(body('A string.', { body: '"text"' })),
  'body-null': detail(body('null.', { body: 'null' })),
  'body-invalid-utf-8': body('Bytes that are not UTF-8.', { body: around('{"a":"', [0xff], '"}') }),
  'body-overlong-utf-8': detail(
    body('An overlong encoding.', { body: around('{"a":"', [0xc0, 0xaf], '"}') }),
  ),
  'body-utf-16': detail(
    body('UTF-16.', {
      body: Uint8Array.from('{"a":1}'.split('').flatMap((char) => [char.charCodeAt(0), 0])),
    }),
  ),
  'body-too-deep': but(body('Arrays 256 deep.', { body: `{"a":${'['.repeat(256)}${']'.repeat(256)}}` }), {
    by: ['seller', 'fuzz'],
  }),
  bom: but(
    body('A byte order mark before the object.', (given) => ({ body: `\uFEFF${textOf(given.body)}` })),
    { by: ['probe', 'seller', 'fuzz'] },
  ),
};
