import type { SignedDelivery } from '../../sender/sign.ts';
import { editHeader, type Expected, type ProbeCase, type ProbeKit, refused, withHeader } from './kit.ts';

const MALFORMED = refused('webhook_body_malformed');

/** A signed body, as text or bytes. */
function body(
  name: string,
  sends: string,
  made: string | Uint8Array,
  expect: Expected = MALFORMED,
): ProbeCase {
  return { name, sends, expect, run: async (kit) => kit.send(await kit.sign(made)) };
}

function envelope(name: string, sends: string, code: string, made: (kit: ProbeKit) => object): ProbeCase {
  return {
    name,
    sends,
    expect: { status: 400, code },
    run: async (kit) => kit.send(await kit.sign(made(kit))),
  };
}

const without = (payload: object, name: string): object =>
  Object.fromEntries(Object.entries(payload).filter(([own]) => own !== name));

const BODIES: readonly ProbeCase[] = [
  body('not-json', 'a signed body that is not JSON', '{"a":'),
  body('array', 'a signed array', '[1]'),
  body(
    'not-utf-8',
    'a signed body that is not UTF-8',
    Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d),
  ),
  body('bom', 'a signed body with a byte order mark', '\uFEFF{}'),
  body('member-twice', 'a member twice', '{"idempotency_key":"a","idempotency_key":"b"}'),
  body(
    'member-twice-deep',
    'a member twice, deep inside and once escaped',
    String.raw`{"result":{"list":[{"a":1,"\u0061":2}]}}`,
  ),
];

const ENVELOPES: readonly ProbeCase[] = [
  envelope('no-idempotency-key', 'no idempotency_key', 'missing_idempotency_key', ({ payloads }) =>
    without(payloads.tool('completed'), 'idempotency_key'),
  ),
  envelope('no-task-id', 'no task_id', 'missing_envelope_fields', ({ payloads }) =>
    without(payloads.tool('completed'), 'task_id'),
  ),
  envelope(
    'media-buy-status',
    'a media buy status at the top level',
    'invalid_envelope_status',
    ({ payloads }) => payloads.tool('completed', { status: 'active' }),
  ),
  envelope('short-key', 'an idempotency_key of 4 characters', 'invalid_envelope', ({ payloads }) =>
    payloads.tool('completed', { idempotency_key: 'abcd' }),
  ),
];

/** What is decided before any signature is looked at. */
function plain(
  name: string,
  sends: string,
  expect: Expected,
  spoil: (delivery: SignedDelivery) => SignedDelivery,
): ProbeCase {
  return {
    name,
    sends,
    expect,
    run: async (kit) => kit.send(spoil(await kit.sign(kit.payloads.tool('completed')))),
  };
}

const MEDIA: Expected = { status: 415 };

/** A framework whose route is for POST alone answers before the receiver does. */
const NO_ROUTE = {
  404: 'the route takes POST alone; a route for every method (app.all) lets the receiver say 405 with Allow: POST',
};

/** What serves several hosts may refuse one that it does not know by itself. */
const NO_HOST = Object.fromEntries(
  [400, 403, 404, 421].map((status) => [status, 'refused in front of the receiver']),
);

/** verification.md §4.12: with the check off the configured URL stands alone, and the signature is what fails. */
const HOST_CODES: Readonly<Record<ProbeKit['hostCheck'], string>> = {
  strict: 'webhook_target_uri_malformed',
  off: 'webhook_signature_invalid',
};

const REQUESTS: readonly ProbeCase[] = [
  plain('text-plain', 'Content-Type: text/plain', MEDIA, (delivery) =>
    withHeader(delivery, 'Content-Type', 'text/plain'),
  ),
  plain('no-content-type', 'no Content-Type', MEDIA, (delivery) =>
    withHeader(delivery, 'Content-Type', undefined),
  ),
  plain('latin-1', 'Content-Type: application/json; charset=iso-8859-1', MEDIA, (delivery) =>
    withHeader(delivery, 'Content-Type', 'application/json; charset=iso-8859-1'),
  ),
  plain('gzip', 'Content-Encoding: gzip', MEDIA, (delivery) =>
    withHeader(delivery, 'Content-Encoding', 'gzip'),
  ),
  plain('put', 'PUT instead of POST', { status: 405, orStatus: NO_ROUTE }, (delivery) => ({
    ...delivery,
    method: 'PUT' as 'POST',
  })),
  {
    name: 'oversize',
    sends: 'a body over the limit',
    expect: { status: 413 },
    run: async (kit) =>
      kit.send(await kit.sign(JSON.stringify(kit.payloads.tool('completed')).padEnd(kit.maxBodyBytes + 1))),
  },
  {
    name: 'other-host',
    sends: 'another Host, and a signature that does not verify',
    expect: ({ hostCheck }) => ({ ...refused(HOST_CODES[hostCheck]), orStatus: NO_HOST }),
    run: async (kit) => {
      const delivery = await kit.sign(kit.payloads.tool('completed'));
      const spoilt = editHeader(delivery, 'Signature', (value) =>
        value.replace(/:(.)/, (_, digit: string) => (digit === 'A' ? ':B' : ':A')),
      );
      return kit.send(withHeader(spoilt, 'Host', 'other.invalid'));
    },
  },
];

const MODES: readonly ProbeCase[] = [
  {
    name: 'hmac-beside',
    sends: 'a legacy HMAC header beside the signature',
    expect: refused('webhook_mode_mismatch'),
    run: async (kit) =>
      kit.send(
        withHeader(
          await kit.sign(kit.payloads.tool('completed')),
          `X-${kit.protocol.toUpperCase()}-Signature`,
          `sha256=${'0'.repeat(64)}`,
        ),
      ),
  },
  plain('bearer-alone', 'a bearer token and no signature', refused('webhook_mode_mismatch'), (delivery) =>
    withHeader(
      withHeader(withHeader(delivery, 'Signature', undefined), 'Signature-Input', undefined),
      'Authorization',
      `Bearer ${'t'.repeat(32)}`,
    ),
  ),
];

/** Scheme, body and envelope. */
export const BODY_CASES: readonly ProbeCase[] = [...REQUESTS, ...MODES, ...BODIES, ...ENVELOPES];
