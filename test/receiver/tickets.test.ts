import { describe, expect, it } from 'vitest';
import { ConfigError, type Outcome, type ReceiverOptions, type Ticket } from '../../src/index.ts';
import { createBufferBudget } from '../../src/for-tests.ts';
import { bearerDelivery, generateKey, type PayloadInput, signHmac } from '../../src/sender/sign.ts';
import { AGENT, testReceiver, payloads, said, sellerKey, type Signed, URL_GIVEN } from './setup.ts';

type Opened = Ticket | Outcome;

function wanted(opened: Opened): Ticket {
  if (opened.kind !== 'ticket') throw new Error(said(opened));
  return opened;
}

function decided(opened: Opened): string {
  if (opened.kind === 'ticket') throw new Error('a ticket');
  return said(opened);
}

const MAX = 4_096;
const SECRET = 'a-shared-secret-of-32-characters';
const large = (): string => JSON.stringify(payloads.tool('completed')).padEnd(MAX);

async function opening(options: Partial<ReceiverOptions> = {}) {
  const made = await testReceiver({ maxBodyBytes: MAX, ...options });
  return { ...made, open: ({ headers }: Pick<Signed, 'headers'>) => made.receiver.open(headers) };
}

describe('receiver.open', () => {
  it('gives the outcome when the headers are refused, else a ticket', async () => {
    const at = await opening();
    const signed = await at.sign(payloads.tool('completed'));
    expect(decided(await at.receiver.open({ 'Content-Type': 'application/json' }))).toBe(
      'refused webhook_signature_header_malformed 401',
    );
    expect(decided(await at.receiver.open({ ...signed.headers, 'Content-Length': '4097' }))).toBe(
      'refused payload_too_large 413',
    );
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const strange = await at.sign(payloads.tool('completed'), { key: stranger.privateJwk });
    expect(decided(await at.open(strange))).toBe('refused webhook_signature_invalid 401');
    const ticket = wanted(await at.open(signed));
    expect(at.outcomes.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused']);
    expect(ticket.add(signed.body)).toBe(true);
    expect(said(await ticket.end())).toBe('accepted 200');
    expect(await ticket.outcome).toBe(at.outcomes.at(-1));
  });

  it('takes a body in chunks and compares its digest', async () => {
    const at = await opening();
    for (const spoilt of [false, true]) {
      const signed = await at.sign(payloads.tool('completed'));
      const ticket = wanted(await at.open(signed));
      for (const byte of signed.body) ticket.add(Uint8Array.of(byte));
      if (spoilt) ticket.add(Uint8Array.of(0x20));
      expect(said(await ticket.end())).toBe(
        spoilt ? 'refused webhook_signature_digest_mismatch 401' : 'accepted 200',
      );
    }
  });

  it.each([
    [
      'HMAC',
      { hmac: { secret: SECRET } },
      (body: PayloadInput) => signHmac({ url: URL_GIVEN, body, secret: SECRET }),
    ],
    [
      'bearer',
      { bearer: { token: SECRET } },
      (body: PayloadInput) => bearerDelivery({ url: URL_GIVEN, body, token: SECRET }),
    ],
  ])('takes a body in chunks that has no digest: %s', async (_scheme, auth, made) => {
    const at = await opening({ senders: [{ agentUrl: AGENT, auth }] });
    const { headers, body } = made(payloads.tool('completed'));
    const ticket = wanted(await at.open({ headers }));
    for (const byte of body) expect(ticket.add(Uint8Array.of(byte))).toBe(true);
    expect(said(await ticket.end())).toBe('accepted 200');
    expect(at.seen).toHaveLength(1);
  });

  it('refuses a bearer token before the body', async () => {
    const token = 'a-token-of-thirty-two-characters';
    const at = await opening({ senders: [{ agentUrl: AGENT, auth: { bearer: { token } } }] });
    const { headers, body } = bearerDelivery({ url: URL_GIVEN, body: payloads.tool('completed'), token });
    expect(decided(await at.receiver.open({ ...headers, Authorization: 'Bearer no' }))).toBe(
      'refused webhook_signature_invalid 401',
    );
    const ticket = wanted(await at.receiver.open(headers));
    ticket.add(body);
    expect(said(await ticket.end())).toBe('accepted 200');
  });
});

describe('a ticket', () => {
  it('ends when the body exceeds the limit', async () => {
    const at = await opening();
    const signed = await at.sign(large());
    const ticket = wanted(await at.open(signed));
    expect(ticket.add(signed.body)).toBe(true);
    expect(ticket.add(Uint8Array.of(0x20))).toBe(false);
    expect(ticket.add(Uint8Array.of(0x20))).toBe(false);
    expect(said(await ticket.end())).toBe('refused payload_too_large 413');
    expect(at.outcomes).toHaveLength(1);
  });

  it('ends by itself at bodyDeadlineMs', async () => {
    const at = await opening({ advanced: { bodyDeadlineMs: 5 } });
    const ticket = wanted(await at.open(await at.sign(payloads.tool('completed'))));
    const outcome = await ticket.outcome;
    expect(outcome && said(outcome)).toBe('unavailable body_timeout 503');
    expect(ticket.add(Uint8Array.of(1))).toBe(false);
    expect(await ticket.end()).toBe(outcome);
  });

  it('that is aborted leaves no outcome, no reserved bytes and no nonce', async () => {
    const at = await opening({ advanced: { maxBufferedBytes: MAX } });
    const signed = await at.sign(large());
    for (let round = 0; round < 3; round += 1) {
      const ticket = wanted(await at.open(signed));
      expect(ticket.add(signed.body)).toBe(true);
      ticket.abort();
      expect(await ticket.outcome).toBeUndefined();
      await expect(ticket.end()).rejects.toThrow(ConfigError);
    }
    expect(at.outcomes).toEqual([]);
    expect(said(await at.send(signed))).toBe('accepted 200');
  });

  it('takes only bytes', async () => {
    const at = await opening();
    const ticket = wanted(await at.open(await at.sign(payloads.tool('completed'))));
    expect(ticket.add('{}' as never)).toBe(false);
    expect(said(await ticket.end())).toBe('unavailable body_consumed 503');
    expect(at.alarms.map(({ code }) => code)).toEqual(['misconfigured']);
  });

  it('checks the end of the window again when the body is complete', async () => {
    let now = Date.now();
    const at = await opening({ now: () => now });
    const signed = [await at.sign(payloads.tool('completed')), await at.sign(payloads.tool('completed'))];
    const ends = signed.map(({ headers }) =>
      Number(/expires=(\d+)/.exec(headers['Signature-Input'] ?? '')?.[1]),
    );
    const tickets = [];
    for (const each of signed) tickets.push(wanted(await at.open(each)));
    const outcomes: string[] = [];
    for (const [i, ticket] of tickets.entries()) {
      now = ((ends[i] ?? 0) + 60) * 1000 + i;
      ticket.add(signed[i]?.body ?? new Uint8Array());
      outcomes.push(said(await ticket.end()));
    }
    expect(outcomes).toEqual(['accepted 200', 'refused webhook_signature_window_invalid 401']);
  });

  it('is answered 503 when the receiver stops meanwhile, without delaying stop()', async () => {
    const at = await opening();
    const signed = await at.sign(payloads.tool('completed'));
    const ticket = wanted(await at.open(signed));
    await at.receiver.stop();
    ticket.add(signed.body);
    expect(said(await ticket.end())).toBe('unavailable shutting_down 503');
  });
});

describe('buffer space of uploads', () => {
  it('is given to one body at a time per keyid and nonce; another gets 503 without space', async () => {
    const at = await opening();
    const signed = await at.sign(payloads.tool('completed'));
    const first = wanted(await at.open(signed));
    expect(decided(await at.open(signed))).toBe('unavailable in_flight 503');
    first.add(signed.body);
    expect(said(await first.end())).toBe('accepted 200');
    const again = wanted(await at.open(signed));
    again.add(signed.body);
    expect(said(await again.end())).toBe('refused webhook_signature_replayed 401');
  });

  it('is left to other senders in part, however much one uses', async () => {
    const other = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-2' });
    const first = await sellerKey();
    const at = await opening({
      advanced: { maxBufferedBytes: 4 * MAX },
      senders: [
        { agentUrl: AGENT, pins: [first.publicJwk] },
        { agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] },
      ],
    });
    const taken: boolean[] = [];
    for (let upload = 0; upload < 3; upload += 1) {
      const signed = await at.sign(large());
      taken.push(wanted(await at.open(signed)).add(signed.body));
    }
    expect(taken).toEqual([true, true, false]);
    expect(at.outcomes.map(({ code }) => code)).toEqual(['overloaded']);
    const signed = await at.sign(large(), { key: other.privateJwk });
    const ticket = wanted(await at.open(signed));
    expect(ticket.add(signed.body)).toBe(true);
    expect(said(await ticket.end())).toBe('accepted 200');
  });

  it('is given entirely to a sender that is registered alone', async () => {
    const at = await opening({ advanced: { maxBufferedBytes: 4 * MAX } });
    const taken: boolean[] = [];
    for (let upload = 0; upload < 5; upload += 1) {
      const signed = await at.sign(large());
      taken.push(wanted(await at.open({ headers: signed.headers })).add(signed.body));
    }
    expect(taken).toEqual([true, true, true, true, false]);
    expect(at.outcomes.map(({ code }) => code)).toEqual(['overloaded']);
  });

  it('is separate for HMAC, which proves nothing before the body', async () => {
    const at = await opening({
      advanced: { maxBufferedBytes: 16 * MAX },
      senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }],
    });
    const tickets: Ticket[] = [];
    const taken: boolean[] = [];
    for (let upload = 0; upload < 3; upload += 1) {
      const signed = signHmac({ url: URL_GIVEN, body: large(), secret: 'another-secret-of-32-characters!' });
      const ticket = wanted(await at.open(signed));
      tickets.push(ticket);
      taken.push(ticket.add(signed.body));
    }
    expect(taken).toEqual([true, true, false]);
    expect(at.outcomes.map(({ code }) => code)).toEqual(['overloaded']);
    expect(tickets[0] && said(await tickets[0].end())).toBe('refused webhook_signature_invalid 401');
  });

  it('is released in full', () => {
    const budget = createBufferBudget(100, 10);
    expect([budget.reserve('a', 50), budget.reserve('a', 1)]).toEqual([true, false]);
    expect([budget.reserve('b', 25), budget.reserve('b', 1)]).toEqual([true, false]);
    expect([budget.reserve('c', 10), budget.reserve('d', 10), budget.reserve('e', 6)]).toEqual([
      true,
      true,
      false,
    ]);
    budget.release('a', 50);
    expect([budget.reserve('e', 6), budget.reserve('a', 10)]).toEqual([true, true]);
  });
});
