// Test cases of the probe: valid deliveries, repeated deliveries, and too many deliveries. `probe.ts` sends them.
import { editionFor, purposesOf } from '../../shared/editions.ts';
import { protocolFor } from '../../shared/wire-names.ts';
import { PROFILE_COMPONENTS } from '../../sender/sign.ts';
import { ACCEPTED, later, type ProbeCase, type ProbeKit, refused } from './probe-kit.ts';

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

/** Returns a sample event as a JSON text that `JSON.parse` and `JSON.stringify` would not reproduce byte for byte. */
const spaced: Payload = ({ payloads }) =>
  `{ "z": 1.0, ${JSON.stringify(payloads.tool('completed'), undefined, 1).slice(1).replace('create_media_buy', 'create\\u005fmedia_buy')}\n`;

/**
 * Test cases with valid deliveries, which a receiver must accept. The only exception is `request-key`: the receiver's
 * edition (protocol version) decides about it.
 */
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

/** Test cases that repeat a whole delivery, or a part of it: its nonce, its event or its task. */
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
    sends: 'another event with a used nonce',
    expect: REPLAYED,
    run: async (kit) => {
      const nonce = nonceOf();
      await kit.begin(await kit.sign(kit.payloads.tool('completed'), { nonce }));
      return kit.send(await kit.sign(kit.payloads.tool('completed'), { nonce }));
    },
  },
  {
    name: 'forgery-burns-nothing',
    sends: 'a delivery whose nonce a forged delivery had before',
    expect: ACCEPTED,
    run: async (kit) => {
      const delivery = await kit.sign(kit.payloads.tool('completed'));
      await kit.send({ ...delivery, body: new TextEncoder().encode('{"forged":true}') });
      return kit.send(delivery);
    },
  },
  {
    name: 'malformed-burns-nonce',
    sends: 'a delivery whose nonce a signed, malformed one had before',
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
    sends: 'a later, different outcome of a task',
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

/** The test case with too many deliveries. It comes last, because the receiver may refuse later deliveries too. */
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
