import { AGENT, type Json, KEYS, nonceOf, NOW, URL_GIVEN } from './kit.ts';
import { accepted, refused, type Sequence, type Step } from './sequence-kit.ts';
import { PROOFS } from './sequences-proofs.ts';
import { TERMINALS } from './sequences-terminals.ts';
import { envelope, reportResult, sign } from './sign.ts';

const duplicate = (more: Json = {}): Json => ({
  status: 200,
  kind: 'duplicate',
  code: null,
  handled: false,
  ...more,
});
const stale: Json = { status: 200, kind: 'stale', code: null, handled: false };
const limited = (code: string, check?: string): Json => ({
  status: 429,
  kind: 'refused',
  code,
  ...(check !== undefined && { check }),
  www_authenticate: null,
  handled: false,
});
const conflict: Json = {
  status: 409,
  kind: 'refused',
  code: 'payload_changed',
  www_authenticate: null,
  handled: false,
};
const failed: Json = {
  status: 503,
  kind: 'unavailable',
  code: 'handler_failed',
  www_authenticate: null,
  handled: true,
};
const replayed = refused('webhook_signature_replayed', 12);

const report = (name: string, timestamp: string): Json =>
  envelope(name, {
    task_type: 'media_buy_delivery',
    timestamp,
    result: reportResult('scheduled', { sequence_number: 1 }),
  });

const RETRIES: readonly Sequence[] = [
  {
    name: 'retry',
    description: 'A retry with a fresh nonce is a duplicate; the very same bytes again are a replay.',
    steps: [
      {
        name: 'first',
        payload: envelope('retry'),
        expected: accepted({ changed: false, reemission: false }),
      },
      {
        name: 'retry with a fresh nonce',
        at: 5,
        payload: envelope('retry'),
        expected: duplicate({ changed: false }),
      },
      {
        name: 'retry signed with another key of the sender',
        at: 10,
        payload: envelope('retry'),
        signing: { key: KEYS.p256 },
        expected: duplicate(),
      },
      { name: 'first delivery again, byte for byte', at: 15, again: 'first', expected: replayed },
      { name: 'retry again, byte for byte', at: 15, again: 'retry with a fresh nonce', expected: replayed },
      { name: 'in the last second of its window', at: 360, again: 'first', expected: replayed },
      {
        name: 'retry after 24 hours less a minute',
        at: 86_340,
        payload: envelope('retry'),
        expected: duplicate(),
      },
    ],
  },
  {
    name: 'retry after a failure',
    description: 'An event that was answered 503 is not safe: its bytes are a retry, not a replay.',
    steps: [
      { name: 'first', payload: envelope('failure'), handler: 'fails', expected: failed },
      { name: 'same bytes', at: 2, again: 'first', handler: 'fails', expected: failed },
      { name: 'fresh nonce', at: 4, payload: envelope('failure'), expected: accepted() },
      { name: 'same bytes when it is safe', at: 6, again: 'first', expected: replayed },
      { name: 'fresh nonce when it is safe', at: 8, payload: envelope('failure'), expected: duplicate() },
    ],
  },
  {
    name: 'window passes',
    description: 'The bytes of a delivery that was never answered are too old after expires + 60 s.',
    steps: [
      { name: 'first', payload: envelope('window'), handler: 'fails', expected: failed },
      { name: 'at the last moment', at: 360, again: 'first', handler: 'fails', expected: failed },
      {
        name: 'a second later',
        at: 361,
        again: 'first',
        expected: refused('webhook_signature_window_invalid', 5),
      },
      { name: 'signed anew', at: 362, payload: envelope('window'), expected: accepted() },
    ],
  },
  {
    name: 'nonces',
    description:
      'A nonce is spent by key id; an unreadable body burns its nonce alone, a refusal before check 12 burns none.',
    steps: [
      {
        name: 'digest mismatch',
        payload: envelope('nonces 1'),
        signing: {
          params: { nonce: `"${nonceOf('shared nonce')}"` },
          headers: { 'Content-Digest': `sha-256=:${'A'.repeat(43)}:` },
        },
        expected: refused('webhook_signature_digest_mismatch', 11),
      },
      {
        name: 'the nonce is not burned',
        payload: envelope('nonces 1'),
        signing: { params: { nonce: `"${nonceOf('shared nonce')}"` } },
        expected: accepted(),
      },
      {
        name: 'the nonce with another event',
        payload: envelope('nonces 2'),
        signing: { params: { nonce: `"${nonceOf('shared nonce')}"` } },
        expected: replayed,
      },
      {
        name: 'the nonce with another key id',
        payload: envelope('nonces 3', { task_id: 'task_3' }),
        signing: { key: KEYS.second, params: { nonce: `"${nonceOf('shared nonce')}"` } },
        expected: accepted(),
      },
      {
        name: 'duplicate key in the body',
        payload: '{"a":1,"a":2}',
        expected: refused('webhook_body_malformed', 14),
      },
      { name: 'the same bytes: the nonce is burned', again: 'duplicate key in the body', expected: replayed },
      {
        name: 'no envelope',
        payload: '{"a":1}',
        expected: { status: 400, code: 'missing_idempotency_key', handled: false },
      },
      { name: 'the same bytes of no envelope', again: 'no envelope', expected: replayed },
    ],
  },
];

/** The same deliveries, answered by edition. */
function changedPayload(
  edition: string,
  answers: { readonly changed: Json; readonly spaced: Json },
): Sequence {
  const payload = envelope('changed');
  return {
    name: `changed payload, edition ${edition}`,
    description:
      'A used idempotency_key with another payload; with other white space and member order; and unchanged.',
    edition,
    steps: [
      { name: 'first', payload, expected: accepted({ changed: false }) },
      {
        name: 'another payload',
        at: 1,
        payload: { ...payload, message: 'Another message.' },
        expected: answers.changed,
      },
      {
        name: 'other white space',
        at: 2,
        payload: JSON.stringify(payload, null, 2),
        expected: answers.spaced,
      },
      {
        name: 'other member order',
        at: 3,
        payload: Object.fromEntries(Object.entries(payload).toReversed()),
        expected: answers.spaced,
      },
      { name: 'unchanged', at: 4, payload, expected: duplicate({ changed: false }) },
    ],
  };
}

const CHANGES: readonly Sequence[] = [
  changedPayload('3.0', { changed: duplicate({ changed: true }), spaced: duplicate({ changed: true }) }),
  changedPayload('3.1', { changed: duplicate({ changed: true }), spaced: duplicate({ changed: true }) }),
  changedPayload('3.2', { changed: conflict, spaced: duplicate({ changed: false }) }),
];

const at = (name: string, status: string, timestamp: string): Json =>
  envelope(`order ${name}`, { status, timestamp });

const ORDER: readonly Sequence[] = [
  {
    name: 'stale',
    description: 'A status older than the one applied to its task is answered 200 and not applied.',
    steps: [
      { name: 'working', payload: at('working', 'working', '2026-09-21T14:00:00Z'), expected: accepted() },
      { name: 'older', payload: at('older', 'submitted', '2026-09-21T13:59:59.999Z'), expected: stale },
      {
        name: 'older, retried',
        at: 1,
        payload: at('older', 'submitted', '2026-09-21T13:59:59.999Z'),
        expected: duplicate(),
      },
      {
        name: 'same instant with another offset',
        payload: at('offset', 'working', '2026-09-21T16:00:00+02:00'),
        expected: accepted(),
      },
      {
        name: 'newer by the seventh digit',
        payload: at('digits', 'working', '2026-09-21T14:00:00.0000001Z'),
        expected: accepted(),
      },
      {
        name: 'older by the seventh digit',
        payload: at('digits older', 'working', '2026-09-21T14:00:00.00000009Z'),
        expected: stale,
      },
      {
        name: 'completed',
        payload: at('completed', 'completed', '2026-09-21T14:01:00Z'),
        expected: accepted(),
      },
      {
        name: 'working at the instant of completed',
        payload: at('tie', 'working', '2026-09-21T14:01:00Z'),
        expected: stale,
      },
      {
        name: 'working after completed',
        payload: at('after', 'working', '2026-09-21T14:02:00Z'),
        expected: accepted({ warnings: ['after_terminal'] }),
      },
      {
        name: 'another task is not concerned',
        payload: envelope('order other', { task_id: 'task_2', timestamp: '2026-09-21T13:00:00Z' }),
        expected: accepted(),
      },
      {
        name: 'without a timestamp nothing is ordered',
        payload: envelope('order none', { timestamp: null }),
        expected: accepted(),
      },
    ],
  },
  {
    name: 'leap second',
    description: 'A leap second is after the second before it, and before the next one.',
    steps: [
      {
        name: 'before it',
        payload: at('leap before', 'working', '2016-12-31T23:59:59.9Z'),
        expected: accepted(),
      },
      { name: 'in it', payload: at('leap', 'working', '2016-12-31T23:59:60.1Z'), expected: accepted() },
      {
        name: 'before it again',
        payload: at('leap again', 'working', '2016-12-31T23:59:59.95Z'),
        expected: stale,
      },
      {
        name: 'after it',
        payload: at('leap after', 'completed', '2017-01-01T00:00:00Z'),
        expected: accepted(),
      },
    ],
  },
  {
    name: 'reports are not ordered',
    description: 'Delivery reports carry task_id and timestamp too, and are never stale.',
    steps: [
      { name: 'newer', payload: report('report newer', '2026-09-21T14:00:00Z'), expected: accepted() },
      { name: 'older', payload: report('report older', '2026-09-21T12:00:00Z'), expected: accepted() },
      {
        name: 'a status older than the reports',
        payload: envelope('report status', { timestamp: '2026-09-21T11:00:00Z' }),
        expected: accepted(),
      },
    ],
  },
  {
    name: 're-emission',
    description: 'One notification_id under two keys is a re-emission: it is handed on, and marked.',
    steps: [
      {
        name: 'first',
        payload: envelope('emission 1', { event_type: 'impairment', notification_id: 'n_1' }),
        expected: accepted({ reemission: false }),
      },
      {
        name: 'retry',
        at: 1,
        payload: envelope('emission 1', { event_type: 'impairment', notification_id: 'n_1' }),
        expected: duplicate(),
      },
      {
        name: 'another key',
        at: 2,
        payload: envelope('emission 2', { event_type: 'impairment', notification_id: 'n_1' }),
        expected: accepted({ reemission: true }),
      },
      {
        name: 'another notification',
        at: 3,
        payload: envelope('emission 3', { event_type: 'impairment', notification_id: 'n_2' }),
        expected: accepted({ reemission: false }),
      },
    ],
  },
];

const CAPS: readonly Sequence[] = [
  {
    name: 'cap of nonces',
    description: 'More live nonces for a key id than allowed: 429, until the first ones are forgotten.',
    receiver: { max_nonces_per_key: 2 },
    steps: [
      { name: 'first', payload: envelope('cap 1', { task_id: 'task_1' }), expected: accepted() },
      { name: 'second', payload: envelope('cap 2', { task_id: 'task_2' }), expected: accepted() },
      {
        name: 'third',
        payload: envelope('cap 3', { task_id: 'task_3' }),
        expected: limited('webhook_signature_rate_abuse', '9a'),
      },
      {
        name: 'another key id',
        payload: envelope('cap 3', { task_id: 'task_3' }),
        signing: { key: KEYS.second },
        expected: accepted(),
      },
      { name: 'a replay is one all the same', again: 'first', expected: replayed },
      {
        name: 'after expires + 60 s',
        at: 361,
        payload: envelope('cap 4', { task_id: 'task_4' }),
        expected: accepted(),
      },
    ],
  },
  {
    name: 'cap of records',
    description:
      'More events than a sender may have: 429, nothing is evicted, and duplicates still get their 200.',
    receiver: { max_records_per_sender: 1 },
    steps: [
      { name: 'first', payload: report('records 1', '2026-09-21T14:00:00Z'), expected: accepted() },
      {
        name: 'second',
        at: 1,
        payload: report('records 2', '2026-09-21T14:00:00Z'),
        expected: limited('sender_over_limit'),
      },
      {
        name: 'duplicate of the first',
        at: 2,
        payload: report('records 1', '2026-09-21T14:00:00Z'),
        expected: duplicate(),
      },
      {
        name: 'the second, byte for byte: its nonce is not burned',
        at: 3,
        again: 'second',
        expected: limited('sender_over_limit'),
      },
    ],
  },
  {
    name: 'cap of body bytes',
    description: 'A body over the limit is refused before anything else; one of exactly the limit is not.',
    receiver: { max_body_bytes: 16 },
    steps: [
      {
        name: '17 bytes',
        payload: '{"a":"12345678"} ',
        expected: { status: 413, code: 'payload_too_large', www_authenticate: null, handled: false },
      },
      {
        name: '16 bytes',
        payload: '{"a":"12345678"}',
        expected: { status: 400, code: 'missing_idempotency_key', handled: false },
      },
    ],
  },
];

function stepOf(sequence: Sequence, step: Step, requests: Map<string, Json>): Json {
  const { name, at: seconds = 0, payload, again, handler, expected, signing, unsigned } = step;
  const body = typeof payload === 'object' ? JSON.stringify(payload) : payload;
  const created = NOW + seconds;
  const params = { created: String(created), expires: String(created + 300), ...signing?.params };
  const made = (): Json =>
    unsigned ? { method: 'POST', url: URL_GIVEN, headers: unsigned, body } : signedRequest();
  const signedRequest = (): Json =>
    sign(`${sequence.name} ${name}`, { ...signing, ...(body !== undefined && { body }), params }).request;
  const request = again === undefined ? made() : requests.get(again);
  if (request === undefined) throw new Error(`${sequence.name}: there is no step ${again}`);
  requests.set(name, request);
  return { name, at: seconds, request, ...(handler && { handler }), expected };
}

/** `sequences.json`. */
export function sequences(): Json {
  return {
    description:
      'Deliveries to one receiver, in this order; `at` is its clock, in seconds after reference_now.',
    sequences: [...RETRIES, ...CHANGES, ...ORDER, ...TERMINALS, ...PROOFS, ...CAPS].map((sequence) => {
      const { name, description, edition = '3.0', receiver, sender } = sequence;
      const requests = new Map<string, Json>();
      return {
        name,
        description,
        edition,
        reference_now: NOW,
        ...(receiver && { receiver }),
        senders: [
          { agent_url: AGENT, jwks_ref: [KEYS.ed25519.kid, KEYS.p256.kid, KEYS.second.kid], ...sender },
        ],
        steps: sequence.steps.map((step) => stepOf(sequence, step, requests)),
      };
    }),
  };
}
