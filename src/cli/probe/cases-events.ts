import { editionFor, protocolFor, purposesOf } from '../../protocol.ts';
import { PROFILE_COMPONENTS, type SignedDelivery } from '../../sender/sign.ts';
import {
  ACCEPTED,
  later,
  type ProbeCase,
  type ProbeKit,
  refused,
  editHeader,
  type Expected,
  withHeader,
} from './kit.ts';

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
  alter: (delivery: SignedDelivery) => SignedDelivery,
): ProbeCase {
  return {
    name,
    sends,
    expect,
    run: async (kit) => kit.send(alter(await kit.sign(kit.payloads.tool('completed')))),
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
      const altered = editHeader(delivery, 'Signature', (value) =>
        value.replace(/:(.)/, (_, digit: string) => (digit === 'A' ? ':B' : ':A')),
      );
      return kit.send(withHeader(altered, 'Host', 'other.invalid'));
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

type Payload = (kit: ProbeKit) => object | string;
type Options = Parameters<ProbeKit['sign']>[1];

function accepted(
  name: string,
  sends: string,
  payload: Payload,
  options: Options | ((kit: ProbeKit) => Options) = {},
): ProbeCase {
  return {
    name,
    sends,
    expect: ACCEPTED,
    run: async (kit) =>
      kit.send(await kit.sign(payload(kit), typeof options === 'function' ? options(kit) : options)),
  };
}

const completed: Payload = ({ payloads }) => payloads.tool('completed');

/** The same value in a text that `JSON.parse` and `JSON.stringify` would not give back. */
const spaced: Payload = ({ payloads }) =>
  `{ "z": 1.0, ${JSON.stringify(payloads.tool('completed'), undefined, 1).slice(1).replace('create_media_buy', 'create\\u005fmedia_buy')}\n`;

/** What every receiver has to take. */
export const ACCEPTED_CASES: readonly ProbeCase[] = [
  accepted('tool-completed', 'a completed task, tool transport', completed),
  accepted('tool-submitted', 'a submitted task, tool transport', ({ payloads }) =>
    payloads.tool('submitted'),
  ),
  accepted('agent-completed', 'a completed task, agent transport', ({ payloads }) =>
    payloads.agent('completed'),
  ),
  accepted('agent-working', 'a status update, agent transport', ({ payloads }) => payloads.agent('working')),
  accepted('report', 'a delivery report', ({ payloads }) => payloads.report()),
  accepted('family', 'an impairment, another family of webhooks', ({ payloads }) =>
    payloads.family('impairment'),
  ),
  accepted('unknown-status', 'a task status that does not exist yet', ({ payloads }) =>
    payloads.tool('completed', { status: 'archived' }),
  ),
  accepted('exact-bytes', 'a body that does not survive parsing and serialising', spaced),
  accepted('base64', 'signature and digest in padded standard base64', completed, { alphabet: 'base64' }),
  accepted('charset', 'Content-Type: application/json; charset=utf-8', completed, {
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
  }),
  accepted('more-components', 'one more covered component', completed, {
    headers: { 'X-Trace-Id': 'probe' },
    components: [...PROFILE_COMPONENTS, 'x-trace-id'],
  }),
  accepted('skewed-clock', 'created 30 s ahead', completed, ({ now }) => ({ now: () => now() + 30_000 })),
  {
    ...accepted('p256', 'a P-256 signature', completed, ({ keys }) => (keys.p256 ? { key: keys.p256 } : {})),
    needs: 'p256',
  },
  {
    ...accepted('request-key', 'a signature by a key for requests', completed, ({ keys }) =>
      keys.request ? { key: keys.request } : {},
    ),
    needs: 'request',
    expect: ({ edition, protocol }) =>
      purposesOf(editionFor(edition), protocolFor(protocol)).includes('request-signing')
        ? ACCEPTED
        : refused('webhook_signature_key_purpose_invalid'),
  },
];

const nonceOf = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url');

const REPLAYED = refused('webhook_signature_replayed');

async function changed(kit: ProbeKit): ReturnType<ProbeKit['send']> {
  const event = kit.payloads.tool('completed');
  await kit.begin(await kit.sign(event));
  return kit.send(await kit.sign({ ...event, message: 'not what it said before' }));
}

/** Deliveries that come more than once, in part or as a whole. */
export const REPEATED_CASES: readonly ProbeCase[] = [
  {
    name: 'duplicate',
    sends: 'the same event again, signed anew',
    expect: ACCEPTED,
    run: async (kit) => {
      const event = kit.payloads.tool('completed');
      await kit.begin(await kit.sign(event));
      return kit.send(await kit.sign(event));
    },
  },
  {
    name: 'replay',
    sends: 'the same bytes again, with the same nonce',
    expect: REPLAYED,
    run: async (kit) => {
      const delivery = await kit.sign(kit.payloads.tool('completed'));
      await kit.begin(delivery);
      return kit.send(delivery);
    },
  },
  {
    name: 'nonce-reused',
    sends: 'another event with a nonce that was used',
    expect: REPLAYED,
    run: async (kit) => {
      const nonce = nonceOf();
      await kit.begin(await kit.sign(kit.payloads.tool('completed'), { nonce }));
      return kit.send(await kit.sign(kit.payloads.tool('completed'), { nonce }));
    },
  },
  {
    name: 'forgery-burns-nothing',
    sends: 'a delivery whose nonce a forged one had before',
    expect: ACCEPTED,
    run: async (kit) => {
      const delivery = await kit.sign(kit.payloads.tool('completed'));
      await kit.send({ ...delivery, body: new TextEncoder().encode('{"forged":true}') });
      return kit.send(delivery);
    },
  },
  {
    name: 'malformed-burns-nonce',
    sends: 'a delivery whose nonce a signed, malformed body had before',
    expect: REPLAYED,
    run: async (kit) => {
      const nonce = nonceOf();
      await kit.send(await kit.sign('{"a":1,"a":2}', { nonce }));
      return kit.send(await kit.sign(kit.payloads.tool('completed'), { nonce }));
    },
  },
  {
    name: 'changed-payload',
    sends: 'the same idempotency_key with another payload',
    expect: ({ edition }) =>
      editionFor(edition).changedPayload === 'conflict' ? { status: 409, code: 'payload_changed' } : ACCEPTED,
    run: changed,
  },
  {
    name: 'second-outcome',
    sends: 'a later, other outcome of a task that has one',
    expect: ({ edition }) =>
      editionFor(edition).secondTerminal === 'refused'
        ? { status: 409, code: 'task_already_final' }
        : ACCEPTED,
    run: async (kit) => {
      const first = kit.payloads.tool('completed');
      await kit.begin(await kit.sign(first));
      const after = { task_id: first['task_id'], timestamp: later(String(first['timestamp']), 1_000) };
      return kit.send(await kit.sign(kit.payloads.tool('failed', after)));
    },
  },
  {
    name: 'stale',
    sends: 'an older status of a task after a newer one',
    expect: ACCEPTED,
    run: async (kit) => {
      const newer = kit.payloads.tool('completed');
      await kit.begin(await kit.sign(newer));
      const older = { task_id: newer['task_id'], timestamp: later(String(newer['timestamp']), -60_000) };
      return kit.send(await kit.sign(kit.payloads.tool('working', older)));
    },
  },
];

/** The very last: whatever comes behind it may be refused too. */
export const RATE_CASE: ProbeCase = {
  name: 'rate',
  sends: 'more deliveries than the cap allows',
  needs: 'rate',
  expect: { status: 429 },
  run: async (kit) => {
    for (let sent = 1; ; sent++) {
      const answer = await kit.send(await kit.sign(kit.payloads.tool('submitted')));
      if (answer.outcome !== 'success' || sent >= (kit.rate ?? 0)) return answer;
    }
  },
};
