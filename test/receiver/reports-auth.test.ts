import { describe, expect, it } from 'vitest';
import type { Outcome, Sender } from '../../src/index.ts';
import { bearerDelivery, type PayloadInput, signHmac } from '../../src/sender/sign.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { AGENT, payloads, said, sellerKey, type TestReceiver, testReceiver, URL_GIVEN } from './setup.ts';

const SECRET = 'a-secret-for-reports-of-32-characters';
const MISMATCH = 'refused webhook_mode_mismatch 401';
const INVALID = 'refused webhook_signature_invalid 401';

interface Reporting extends TestReceiver {
  readonly byHmac: (payload: PayloadInput, more?: HmacOptions) => Promise<Outcome>;
}

interface HmacOptions {
  readonly secret?: string;
  readonly protocol?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const hmacOf = (payload: PayloadInput, { secret = SECRET, protocol }: HmacOptions = {}) =>
  signHmac({ url: URL_GIVEN, body: payload, secret, allowMalformed: true, ...(protocol && { protocol }) });

/** One seller that signs, and whose reports may come by HMAC. */
async function reporting(sender: Partial<Sender> = {}): Promise<Reporting> {
  const key = await sellerKey();
  const auth = { reports: { secret: SECRET } };
  const made = await testReceiver({
    senders: [{ agentUrl: AGENT, pins: [key.publicJwk], auth, ...sender }],
    onChallenge: () => true,
  });
  return {
    ...made,
    byHmac: async (payload, options = {}) => {
      const delivery = hmacOf(payload, options);
      const headers = { ...delivery.headers, ...options.headers };
      return made.receiver.verifyAndDispatch(delivery.body, headers);
    },
  };
}

const kinds = ({ seen }: TestReceiver): string[] => seen.map(({ event }) => event.kind);

describe('a sender whose reports may come by HMAC (verification.md §2.22)', () => {
  it.each(['proto', 'adcp'])('a report by HMAC of the name %s, or signed, is handled', async (protocol) => {
    const at = await reporting();
    expect(said(await at.byHmac(payloads.report(), { protocol }))).toBe('accepted 200');
    expect(said(await at.deliver(payloads.report()))).toBe('accepted 200');
    expect(kinds(at)).toEqual(['delivery-report', 'delivery-report']);
    // It was asked for by us: nobody can do anything about it.
    expect(at.alarms).toEqual([]);
  });

  it('whatever else is signed is handled as of any sender that signs', async () => {
    const at = await reporting();
    expect(said(await at.deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(said(await at.deliver(sampleChallenge(AGENT, undefined)))).toBe('challenge 200');
    expect(kinds(at)).toEqual(['task']);
  });

  it.each([
    ['a task', () => payloads.tool('completed')],
    ['a task under way', () => payloads.tool('working')],
    ['a native task of the agent transport', () => payloads.agent('completed')],
    ['an impairment', () => payloads.family('impairment')],
    ['a body without a family', () => ({ idempotency_key: crypto.randomUUID(), notification_type: 'odd' })],
  ])('%s by HMAC is refused, though the secret is right, and nothing of it is kept', async (_, make) => {
    const at = await reporting();
    const payload = make();
    expect(said(await at.byHmac(payload))).toBe(MISMATCH);
    expect(at.seen).toEqual([]);
    // Its key is free: the seller's own event is the first under it.
    expect(said(await at.deliver(payload))).toBe('accepted 200');
    expect(at.seen).toHaveLength(1);
  });

  it('a task that calls itself a report has no task to end', async () => {
    const at = await reporting();
    const task = payloads.tool('completed');
    const disguised = { ...payloads.report(), task_id: task['task_id'], operation_id: 'op-1' };
    expect(said(await at.byHmac(disguised))).toBe('accepted 200');
    expect(said(await at.deliver(task))).toBe('accepted 200');
    expect(kinds(at)).toEqual(['delivery-report', 'task']);
    expect(at.seen[1]?.event.warnings).toEqual([]);
  });

  it('a report that does not fit is a report all the same: it is handled, and not lost', async () => {
    const at = await reporting();
    const payload = payloads.report();
    expect(said(await at.byHmac({ ...payload, result: { media_buy_deliveries: 'none' } }))).toBe(
      'accepted 200',
    );
    expect(at.seen).toMatchObject([{ event: { kind: 'other', family: 'media_buy_delivery' } }]);
  });

  it('a proof of control by HMAC alone is never echoed', async () => {
    const at = await reporting();
    expect(said(await at.byHmac(sampleChallenge(AGENT, undefined)))).toBe('refused challenge_refused 403');
  });

  it('one event by both schemes is one event, in either order; another payload under its key is heard', async () => {
    for (const edition of ['3.0', '3.2'] as const) {
      const at = await reporting({ edition });
      const [one, other] = [payloads.report(), payloads.report()];
      expect(said(await at.byHmac(one))).toBe('accepted 200');
      expect(said(await at.deliver(one))).toBe('duplicate 200');
      expect(said(await at.deliver(other))).toBe('accepted 200');
      expect(said(await at.byHmac(other))).toBe('duplicate 200');
      expect(at.seen).toHaveLength(2);
      await at.deliver({ ...one, message: 'changed' });
      expect(at.alarms.map(({ code }) => code)).toEqual(['payload_changed']);
    }
  });

  it('fields of both schemes together are refused, whichever of them holds', async () => {
    const at = await reporting();
    const payload = payloads.report();
    const signed = await at.sign(payload);
    const spoilt = Object.fromEntries(
      Object.entries(signed.headers).filter(([name]) => name.toLowerCase().startsWith('signature')),
    );
    for (const secret of [SECRET, 'a-secret-that-nobody-was-ever-given']) {
      const { headers } = hmacOf(payload, { secret });
      const both = { ...headers, ...signed.headers };
      expect(said(await at.receiver.verifyAndDispatch(signed.body, both))).toBe(MISMATCH);
    }
    for (const [name, value] of Object.entries(spoilt)) {
      expect(said(await at.byHmac(payload, { headers: { [name]: value } })), name).toBe(MISMATCH);
      expect(said(await at.byHmac(payload, { headers: { [name]: '' } })), `empty ${name}`).toBe(MISMATCH);
    }
    const { headers: adcp } = hmacOf(payload, { protocol: 'adcp' });
    const named = Object.entries(adcp).find(([name]) => name.toLowerCase() === 'x-adcp-signature');
    expect(
      said(
        await at.receiver.verifyAndDispatch(signed.body, {
          ...signed.headers,
          ...Object.fromEntries([named ?? []]),
        }),
      ),
    ).toBe(MISMATCH);
    expect(at.seen).toEqual([]);
  });

  it('nothing is gained by taking fields away or putting them in', async () => {
    const at = await reporting();
    const signed = await at.sign(payloads.report());
    const without = (name: string) =>
      Object.fromEntries(Object.entries(signed.headers).filter(([is]) => is.toLowerCase() !== name));
    const send = async (headers: Readonly<Record<string, string>>) =>
      said(await at.receiver.verifyAndDispatch(signed.body, headers));
    // Stripped of its signature, with an HMAC of somebody who has no secret.
    const { headers: forged } = hmacOf(signed.body, { secret: 'a-secret-that-nobody-was-ever-given' });
    const bare = Object.fromEntries(
      Object.entries(signed.headers).filter(([name]) => !name.toLowerCase().startsWith('signature')),
    );
    expect(await send({ ...bare, ...forged })).toBe(INVALID);
    expect(await send(bare)).toBe('refused webhook_signature_header_malformed 401');
    expect(await send(without('signature'))).not.toMatch(/accepted|duplicate/);
    expect(await send(without('signature-input'))).not.toMatch(/accepted|duplicate/);
    // A bearer token proves nothing, even if it is the secret.
    const bearer = bearerDelivery({ url: URL_GIVEN, body: payloads.report(), token: SECRET });
    expect(said(await at.receiver.verifyAndDispatch(bearer.body, bearer.headers))).toBe(MISMATCH);
    // HMAC fields of both names.
    const { headers: proto } = hmacOf(signed.body);
    const { headers: adcp } = hmacOf(signed.body, { protocol: 'adcp' });
    expect(await send({ ...proto, ...adcp })).toBe('refused webhook_signature_header_malformed 401');
    expect(at.seen).toEqual([]);
  });

  it('a secret that is rotated counts as the previous one; a wrong one never', async () => {
    const next = 'the-next-secret-for-reports-of-32-chars';
    const at = await reporting({ auth: { reports: { secret: next, previousSecret: SECRET } } });
    expect(said(await at.byHmac(payloads.report()))).toBe('accepted 200');
    expect(said(await at.byHmac(payloads.report(), { secret: next }))).toBe('accepted 200');
    expect(said(await at.byHmac(payloads.report(), { secret: `${next}x` }))).toBe(INVALID);
  });

  it('an agent that signs alone stays so: the secret of another counts for nobody else', async () => {
    const plain = await testReceiver();
    const { body, headers } = hmacOf(payloads.report());
    expect(said(await plain.receiver.verifyAndDispatch(body, headers))).toBe(MISMATCH);
    const key = await sellerKey();
    const sender = { agentUrl: AGENT, pins: [key.publicJwk] };
    const other = { agentUrl: 'https://other.example/mcp', pins: [key.publicJwk] };
    const reports = { reports: { secret: SECRET } };
    const make = (senders: Sender[]) => testReceiver({ senders });
    await expect(make([{ ...sender, auth: reports }, other])).rejects.toThrow('several kinds of auth');
    await expect(
      make([
        { ...sender, auth: reports },
        { ...other, auth: reports },
      ]),
    ).rejects.toThrow('have the same secret');
  });

  it.each([
    [{ reports: { secret: 'short' } }, 'at least 32'],
    [{ reports: { secret: SECRET, token: 'x' } }, 'token is not known'],
    [{ reports: undefined }, 'give { hmac'],
    [{ reports: { secret: SECRET }, hmac: { secret: SECRET } }, 'give { hmac'],
  ])('a mistake in %j fails at construction', async (auth, message) => {
    await expect(reporting({ auth: auth as Sender['auth'] & {} })).rejects.toThrow(message);
  });
});
