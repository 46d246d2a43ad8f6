import { describe, expect, it } from 'vitest';
import type { ReceiverOptions } from '../../src/index.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { DOORS } from '../adapters/contract/doors.ts';
import { AGENT, testReceiver, payloads, said, URL_GIVEN, type TestReceiver } from './setup.ts';

interface Line {
  readonly message: string;
  readonly [field: string]: unknown;
}

interface Logged extends TestReceiver {
  /** What the owner sees at level warn, but for alarms. */
  readonly warnings: () => Promise<Line[]>;
  time: number;
}

async function loggedSetup(more: Partial<ReceiverOptions> = {}): Promise<Logged> {
  const lines: Line[] = [];
  const at = { time: Date.now() };
  const made = await testReceiver({
    now: () => at.time,
    logger: {
      debug() {},
      info() {},
      warn: (fields, message) => void lines.push({ ...fields, message }),
      error() {},
    },
    ...more,
  });
  return Object.assign(at, {
    ...made,
    deliver: async (...[payload, changes]: Parameters<TestReceiver['deliver']>) =>
      made.send(await made.sign(payload, { now: () => at.time, ...changes })),
    warnings: async () => {
      // The line is nobody's to wait for: its code is loaded with the first.
      await loadOnDemand();
      await new Promise((resolve) => setImmediate(resolve));
      return lines.splice(0).filter(({ docs, registered }) => docs !== undefined && registered === undefined);
    },
  });
}

const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');
const forged = async () => ({
  key: (await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' })).privateJwk,
});

describe('the first refusal of a sender with a code in a minute is a line at level warn', () => {
  it('has key id, code, URL and the document to read; the next one has the number left out', async () => {
    const made = await loggedSetup();
    const wrong = await forged();
    for (let count = 0; count < 3; count += 1) await made.deliver(completed(), wrong);
    expect(await made.warnings()).toEqual([
      {
        code: 'webhook_signature_invalid',
        sender: AGENT,
        keyid: 'seller-1',
        url: URL_GIVEN,
        docs: 'docs/errors.md#webhook_signature_invalid',
        message: 'a delivery was refused: The signature does not verify.',
      },
    ]);
    // Another code is another line.
    await made.deliver(completed(), { params: { tag: 'other' } });
    expect(await made.warnings()).toMatchObject([
      { code: 'webhook_signature_tag_invalid', message: 'a delivery was refused: Got "other".' },
    ]);
    made.time += 60_000;
    await made.deliver(completed(), wrong);
    expect(await made.warnings()).toMatchObject([{ code: 'webhook_signature_invalid', suppressed: 2 }]);
  });

  it('is not suppressed by requests that have no key id of a sender', async () => {
    const made = await loggedSetup();
    for (const kid of ['a', 'b', 'c'])
      await made.deliver(completed(), { params: { keyid: kid, tag: 'other' } });
    expect(await made.warnings()).toMatchObject([{ keyid: 'a', code: 'webhook_signature_tag_invalid' }]);
    await made.deliver(completed(), { params: { tag: 'other' } });
    expect(await made.warnings()).toMatchObject([{ keyid: 'seller-1', sender: AGENT }]);
  });

  it('is separate for each of several senders at one URL', async () => {
    const keys = await Promise.all(
      ['k-0', 'k-1'].map((kid) => generateKey('ed25519', 'webhook-signing', { kid })),
    );
    const senders = keys.map(({ publicJwk }, index) => ({
      agentUrl: `https://s${index}.example/mcp`,
      pins: [publicJwk],
    }));
    const made = await loggedSetup({ senders });
    for (const { privateJwk } of [...keys, ...keys])
      await made.deliver(completed(), { key: privateJwk, params: { tag: 'x' } });
    expect((await made.warnings()).map(({ sender }) => sender)).toEqual(
      senders.map(({ agentUrl }) => agentUrl),
    );
  });

  it('names the sender of an authentic delivery that is refused', async () => {
    const made = await loggedSetup();
    expect(said(await made.deliver({ no: 'key' }))).toBe('refused missing_idempotency_key 400');
    expect(await made.warnings()).toMatchObject([{ sender: AGENT, code: 'missing_idempotency_key' }]);
  });

  it('is written for requests without a key id too', async () => {
    const { receiver, warnings } = await loggedSetup();
    await receiver.verifyAndDispatch(new Uint8Array(2), { 'Content-Type': 'application/json' });
    await receiver.verifyAndDispatch(new Uint8Array(2), { 'Content-Type': 'application/json' });
    const lines = await warnings();
    expect(lines).toMatchObject([{ code: 'webhook_signature_header_malformed', url: URL_GIVEN }]);
    expect(lines[0]).not.toHaveProperty('keyid');
  });

  it.each(DOORS)('through $name: is written for what an adapter refuses by itself', async (door) => {
    const made = await loggedSetup();
    await using open = await door.open(made.receiver);
    const { body, headers } = await made.sign(completed());
    const lines: [string, string][] = [['Host', 'buyer.example'], ...Object.entries(headers)];
    const get = { method: 'PUT', target: '/webhooks/proto', headers: lines, body };
    await open.ask(get);
    await open.ask(get);
    expect(await made.warnings()).toMatchObject([
      { code: 'method_not_allowed', keyid: 'seller-1', docs: 'docs/errors.md#method_not_allowed' },
    ]);
  });
});
