import { ACCEPTED, type ProbeCase, refused } from './case.ts';
import type { ProbeKit } from './kit.ts';
import { later } from './spoil.ts';

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
    expect: ({ edition }) => (edition === '3.2' ? { status: 409, code: 'payload_changed' } : ACCEPTED),
    run: changed,
  },
  {
    name: 'second-outcome',
    sends: 'a later, other outcome of a task that has one',
    expect: ({ edition }) => (edition === '3.2' ? { status: 409, code: 'task_already_final' } : ACCEPTED),
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
